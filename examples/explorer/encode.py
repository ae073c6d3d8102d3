"""The sentence encoder MiniLM-L6 on some sentences: `rushlight explore -m examples.explorer.encode`."""

import rushlight as torch
from examples.minilm import batches, load_encoder, load_tokenizer, model_folder

SENTENCES = ["The cat sat on the mat.", "A kitten rested on a rug.", "Stock prices fell sharply today."]

folder = model_folder()
encoder = torch.compile(load_encoder(folder).eval())
with torch.inference_mode():
    for batch in batches(load_tokenizer(folder), SENTENCES):
        for _ in range(10):
            vectors = encoder(batch.input_ids, batch.attention_mask)
        print(vectors @ vectors.T)

"""Files of clients, and the package that each is about, in the order of the table in docs/clients.md."""

FILES = {
    "transformers_encoders": "transformers",
    "transformers_language": "transformers",
    "transformers_tools": "transformers",
    "timm_models": "timm",
    "torchvision_models": "torchvision",
    "einops_layers": "einops",
    "safetensors_files": "safetensors",
    "accelerate_loops": "accelerate",
    "peft_adapters": "peft",
    "sentence_transformers_models": "sentence-transformers",
    "diffusers_models": "diffusers",
    "kornia_images": "kornia",
    "torchmetrics_metrics": "torchmetrics",
    "lightning_training": "lightning",
    "x_transformers_models": "x-transformers",
    "gpytorch_processes": "gpytorch",
    "torchdiffeq_solvers": "torchdiffeq",
    "open_clip_models": "open_clip",
    "captum_attributions": "captum",
}

# Clients that every change has to pass: under two minutes on two cores.
QUICK = {
    "transformers_encoders": ["BERT", "ViT"],
    "transformers_language": ["GPT-2", "Llama", "Whisper"],
    "transformers_tools": ["pipeline"],
    "timm_models": ["resnet18", "vit_tiny"],
    "einops_layers": [],
    "safetensors_files": [],
}

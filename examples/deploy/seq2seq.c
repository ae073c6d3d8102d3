/* Runs the scripted greedy decoder on ids:
 *
 *     seq2seq decoder.weights LIMIT ID ID ID ID ID
 *
 * Prints the symbols that it chose, and the logits of the last step. */
#include <stdio.h>
#include <stdlib.h>

#include "decoder.h"

int main(int argc, char** argv) {
  char message[512];
  decoder* model = NULL;
  decoder_tensor ids, logits = {0};
  decoder_value chosen = {0};
  const int64_t sizes[] = {1, argc > 3 ? argc - 3 : 0};
  int64_t* numbers;
  int64_t place, steps, width;
  int i, status = 1;
  if (argc < 4) {
    fprintf(stderr, "seq2seq decoder.weights LIMIT ID...\n");
    return 1;
  }
  numbers = malloc((size_t)(argc - 3) * sizeof(*numbers));
  if (!numbers) return 1;
  for (i = 3; i < argc; ++i) numbers[i - 3] = atoll(argv[i]);
  if (decoder_create(argv[1], &model, message, sizeof(message)) != DECODER_OK) {
    fprintf(stderr, "seq2seq: %s\n", message);
    free(numbers);
    return 1;
  }
  ids = decoder_tensor_of(DECODER_INT64, numbers, 2, sizes);
  if (decoder_forward(model, &ids, atoll(argv[2]), &logits, &chosen) != DECODER_OK) {
    fprintf(stderr, "seq2seq: %s\n", decoder_error(model));
  } else {
    for (i = 0; (size_t)i < chosen.as.list.count; ++i)
      printf("%s%lld", i ? " " : "", (long long)chosen.as.list.items[i].as.integer);
    printf("\n");
    steps = logits.sizes[1], width = logits.sizes[2];
    for (place = 0; place < width; ++place) printf("%s%.6f", place ? " " : "", ((float*)logits.data)[(steps - 1) * width + place]);
    printf("\n");
    status = 0;
  }
  decoder_destroy(model);
  free(numbers);
  return status;
}

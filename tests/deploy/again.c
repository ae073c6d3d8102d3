/* Runs a model's forward many times with the places of its results as the last run left them, and with its state among them.
 * Built as arguments.c; `./again weights` says what the results come to. */
#include HEADER

#include <stdio.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define M(word) JOIN(MODEL, word)
#define C(word) JOIN(UPPER, word)

static float memory[300 * 200];

int main(int count, char** words) {
  int64_t sizes[] = {300, 200};
  char message[512];
  MODEL* model;
  M(tensor) result = {0}, total = {0};
  M(value) parts = {0};
  int run;
  if (count != 2 || M(create)(words[1], &model, message, sizeof message) != C(OK)) return 1;
  for (run = 1; run <= 8; ++run) {
    int i;
    M(tensor) x = M(tensor_of)(C(FLOAT32), memory, 2, sizes);
    if (run == 4) x.sizes[0] = 20; /* a run that needs less gives memory back, the next takes more again */
    for (i = 0; i < 300 * 200; ++i) memory[i] = (float)run;
    if (M(forward)(model, &x, &result, &total, &parts) != C(OK)) {
      printf("run %d: %s\n", run, M(error)(model));
      return 1;
    }
    for (i = 0; i < (int)(result.sizes[0] * result.sizes[1]); ++i)
      if (((float*)result.data)[i] != 2 * run + 1) return 1;
    if (parts.kind != C(LIST) || ((float*)parts.as.list.items[0].as.tensor.data)[7] != (float)run + 3) return 1;
    printf("%d ", (int)*(float*)total.data);
  }
  M(destroy)(model);
  return 0;
}

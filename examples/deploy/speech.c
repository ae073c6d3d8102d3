/* Finds the speech in a WAV file with silero-vad: prints when it begins and ends.
 *
 *     speech sound.wav [silero.weights] [--probabilities]
 *
 * The file is 16-bit PCM or 32-bit float at 16 kHz; of several channels the first is heard. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "silero.h"

enum { RATE = 16000, CHUNK = 512 };

/* Speech begins where the probability is at least this, and ends where it stays below the other for so many chunks. */
static const float BEGINS = 0.5f, ENDS = 0.35f;
enum { SILENT_CHUNKS = 4, FEWEST_CHUNKS = 8 };

static uint32_t number(const unsigned char* at, int bytes) {
  uint32_t made = 0;
  while (bytes-- > 0) made = made << 8 | at[bytes];
  return made;
}

/* The samples of a WAV file, or null after saying what is wrong with it. */
static float* read_wav(const char* path, long* count) {
  FILE* file = fopen(path, "rb");
  unsigned char head[12], part[8], format[16];
  int kind = 0, channels = 0, bits = 0;
  float* samples = NULL;
  if (!file) {
    fprintf(stderr, "speech: %s cannot be opened\n", path);
    return NULL;
  }
  if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) || memcmp(head + 8, "WAVE", 4)) {
    fprintf(stderr, "speech: %s is no WAV file\n", path);
    fclose(file);
    return NULL;
  }
  while (!samples && fread(part, 1, 8, file) == 8) {
    const uint32_t size = number(part + 4, 4);
    if (!memcmp(part, "fmt ", 4) && size >= 16 && fread(format, 1, 16, file) == 16) {
      kind = (int)number(format, 2), channels = (int)number(format + 2, 2), bits = (int)number(format + 14, 2);
      if (number(format + 4, 4) != RATE) break;
      if (fseek(file, (long)(size - 16 + (size & 1)), SEEK_CUR)) break;
    } else if (!memcmp(part, "data", 4) && channels > 0 && ((kind == 1 && bits == 16) || (kind == 3 && bits == 32))) {
      const size_t width = (size_t)channels * (size_t)bits / 8;
      unsigned char* row = malloc(width);
      const size_t most = size / width;
      *count = 0;
      samples = malloc((most + 1) * sizeof(float));
      while (row && samples && (size_t)*count < most && fread(row, 1, width, file) == width) {
        float sample;
        if (kind == 1) sample = (float)(int16_t)number(row, 2) / 32768.0f;
        else memcpy(&sample, row, 4);
        samples[(*count)++] = sample;
      }
      free(row);
    } else if (fseek(file, (long)(size + (size & 1)), SEEK_CUR)) {
      break;
    }
  }
  fclose(file);
  if (!samples) fprintf(stderr, "speech: %s must be 16-bit or float WAV at %d Hz\n", path, RATE);
  return samples;
}

int main(int argc, char** argv) {
  const char* weights = argc > 2 && argv[2][0] != '-' ? argv[2] : "silero.weights";
  const int shows_all = argc > 2 && !strcmp(argv[argc - 1], "--probabilities");
  const int64_t sizes[] = {1, CHUNK};
  char message[512];
  float chunk[CHUNK];
  silero* model = NULL;
  long count = 0, at, begin = -1, last = -1;
  float* samples;
  int status = 0;
  if (argc < 2) {
    fprintf(stderr, "speech sound.wav [silero.weights] [--probabilities]\n");
    return 1;
  }
  samples = read_wav(argv[1], &count);
  if (!samples) return 1;
  if (silero_create(weights, &model, message, sizeof(message)) != SILERO_OK) {
    fprintf(stderr, "speech: %s\n", message);
    free(samples);
    return 1;
  }
  for (at = 0; at * CHUNK < count && !status; ++at) {
    const long left = count - at * CHUNK, used = left < CHUNK ? left : CHUNK;
    const silero_tensor input = silero_tensor_of(SILERO_FLOAT32, chunk, 2, sizes);
    silero_tensor output = {0};
    float probability;
    memset(chunk, 0, sizeof(chunk));
    memcpy(chunk, samples + at * CHUNK, (size_t)used * sizeof(float));
    if (silero_forward(model, &input, RATE, &output) != SILERO_OK) {
      fprintf(stderr, "speech: %s\n", silero_error(model));
      status = 1;
      break;
    }
    probability = *(const float*)output.data;
    if (shows_all) printf("%.6f\n", probability);
    if (probability >= ENDS && begin >= 0) last = at;
    if (probability >= BEGINS) {
      if (begin < 0) begin = at;
      last = at;
    }
    if (begin >= 0 && at - last >= SILENT_CHUNKS) {
      if (!shows_all && last + 1 - begin >= FEWEST_CHUNKS)
        printf("%.3f %.3f\n", (double)begin * CHUNK / RATE, (double)(last + 1) * CHUNK / RATE);
      begin = -1;
    }
  }
  if (!status && !shows_all && begin >= 0 && last + 1 - begin >= FEWEST_CHUNKS)
    printf("%.3f %.3f\n", (double)begin * CHUNK / RATE, (double)count / RATE < (double)(last + 1) * CHUNK / RATE
                              ? (double)count / RATE : (double)(last + 1) * CHUNK / RATE);
  silero_destroy(model);
  free(samples);
  return status;
}

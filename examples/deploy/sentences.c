/* Says how near sentences are to the first one, with MiniLM-L6:
 *
 *     sentences minilm.weights vocab.txt "a query" "a sentence" "another" ...
 *     sentences minilm.weights - 101 7592 102                   (ids instead of words: prints the vector)
 *
 * Words are taken apart as BERT's uncased vocabulary has it, for ASCII text; other letters stay as they are. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "minilm.h"

enum { MAX_TOKENS = 512, MAX_WORD = 100, BUCKETS = 1 << 16 };

/* The vocabulary: each line a piece of a word, whose number is its id. */
typedef struct entry {
  char* text;
  int64_t id;
  struct entry* next;
} entry;
static entry* buckets[BUCKETS];

static unsigned hash_of(const char* text, size_t size) {
  unsigned made = 2166136261u;
  while (size-- > 0) made = (made ^ (unsigned char)*text++) * 16777619u;
  return made % BUCKETS;
}

static int64_t find(const char* text, size_t size) {
  const entry* each;
  for (each = buckets[hash_of(text, size)]; each; each = each->next)
    if (strlen(each->text) == size && !memcmp(each->text, text, size)) return each->id;
  return -1;
}

static int read_vocabulary(const char* path) {
  char line[512];
  int64_t id = 0;
  FILE* file = fopen(path, "r");
  if (!file) return 0;
  for (; fgets(line, sizeof(line), file); ++id) {
    const size_t size = strcspn(line, "\r\n");
    entry* made = malloc(sizeof(entry));
    const unsigned place = hash_of(line, size);
    if (!made) break;
    line[size] = 0;
    made->text = strdup(line);
    made->id = id;
    made->next = buckets[place];
    buckets[place] = made;
  }
  fclose(file);
  return id > 0;
}

static void forget_vocabulary(void) {
  int place;
  for (place = 0; place < BUCKETS; ++place)
    while (buckets[place]) {
      entry* next = buckets[place]->next;
      free(buckets[place]->text);
      free(buckets[place]);
      buckets[place] = next;
    }
}

/* The longest pieces of a word, one after the other, those behind the first with ## before them. */
static int pieces_of(const char* word, size_t size, int64_t* ids, int room) {
  char piece[MAX_WORD + 3];
  size_t begin = 0;
  int count = 0;
  if (size > MAX_WORD) begin = size + 1;
  while (begin < size && count < room) {
    size_t end;
    int64_t id = -1;
    for (end = size; end > begin && id < 0; --end) {
      const size_t length = end - begin, extra = begin ? 2 : 0;
      memcpy(piece, "##", 2);
      memcpy(piece + extra, word + begin, length);
      id = find(piece, length + extra);
    }
    if (id < 0) break;
    ids[count++] = id;
    begin = end + 1;
  }
  if (begin == size || count == room) return count;
  ids[0] = find("[UNK]", 5);
  return 1;
}

static int is_alone(unsigned char c) { return c < 128 && ispunct(c); }

static int tokens_of(const char* text, int64_t* ids) {
  int count = 0;
  ids[count++] = find("[CLS]", 5);
  while (*text && count < MAX_TOKENS - 1) {
    char word[512];
    size_t size = 0;
    if (isspace((unsigned char)*text)) {
      ++text;
      continue;
    }
    if (is_alone((unsigned char)*text)) word[size++] = *text++;
    else
      while (*text && !isspace((unsigned char)*text) && !is_alone((unsigned char)*text) && size < sizeof(word) - 1)
        word[size++] = (char)tolower((unsigned char)*text++);
    count += pieces_of(word, size, ids + count, MAX_TOKENS - 1 - count);
  }
  ids[count++] = find("[SEP]", 5);
  return count;
}

static int embed(minilm* model, int64_t* ids, int rows, int tokens, int64_t* mask, minilm_tensor* vectors) {
  const int64_t sizes[] = {rows, tokens};
  const minilm_tensor input = minilm_tensor_of(MINILM_INT64, ids, 2, sizes);
  const minilm_tensor attention = minilm_tensor_of(MINILM_INT64, mask, 2, sizes);
  if (minilm_forward(model, &input, &attention, vectors) == MINILM_OK) return 1;
  fprintf(stderr, "sentences: %s\n", minilm_error(model));
  return 0;
}

int main(int argc, char** argv) {
  char message[512];
  minilm* model = NULL;
  minilm_tensor vectors = {0};
  const int rows = argc > 3 && strcmp(argv[2], "-") ? argc - 3 : 1;
  int64_t *ids, *mask;
  int row, i, longest = 0, status = 1;
  if (argc < 4) {
    fprintf(stderr, "sentences minilm.weights vocab.txt QUERY SENTENCE...\n");
    return 1;
  }
  ids = calloc((size_t)rows * MAX_TOKENS, sizeof(*ids));
  mask = calloc((size_t)rows * MAX_TOKENS, sizeof(*mask));
  if (!ids || !mask || minilm_create(argv[1], &model, message, sizeof(message)) != MINILM_OK) {
    fprintf(stderr, "sentences: %s\n", ids && mask ? message : "there is no memory left");
  } else if (!strcmp(argv[2], "-")) {
    for (i = 3; i < argc && i - 3 < MAX_TOKENS; ++i) ids[i - 3] = atoll(argv[i]), mask[i - 3] = 1;
    if (embed(model, ids, 1, i - 3, mask, &vectors)) {
      for (i = 0; i < vectors.sizes[1]; ++i) printf("%s%.6f", i ? " " : "", ((float*)vectors.data)[i]);
      printf("\n");
      status = 0;
    }
  } else if (!read_vocabulary(argv[2])) {
    fprintf(stderr, "sentences: there is no vocabulary in %s\n", argv[2]);
  } else {
    int64_t* packed_mask = mask;
    int counts[256];
    for (row = 0; row < rows && row < 256; ++row) {
      counts[row] = tokens_of(argv[3 + row], ids + (size_t)row * MAX_TOKENS);
      if (counts[row] > longest) longest = counts[row];
    }
    for (row = 0; row < rows && row < 256; ++row) {
      memmove(ids + (size_t)row * (size_t)longest, ids + (size_t)row * MAX_TOKENS, (size_t)longest * sizeof(*ids));
      for (i = 0; i < longest; ++i) packed_mask[row * longest + i] = i < counts[row];
    }
    if (embed(model, ids, rows, longest, mask, &vectors)) {
      const float* first = vectors.data;
      for (row = 1; row < rows; ++row) {
        double product = 0;
        for (i = 0; i < vectors.sizes[1]; ++i) product += (double)first[i] * (double)first[row * vectors.strides[0] + i];
        printf("%.4f %s\n", product, argv[3 + row]);
      }
      status = 0;
    }
    forget_vocabulary();
  }
  minilm_destroy(model);
  free(ids);
  free(mask);
  return status;
}

/* The most memory that the process has had, in MB. */
#include <stdio.h>

static double peak_memory(void) {
  char line[256];
  long kilobytes = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof(line), file))
    if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1) break;
  if (file) fclose(file);
  return (double)kilobytes / 1024;
}

/* Finds the end of a thread's stack through the threads library. If the library does not know it, the stack counts as endless. */
#define _GNU_SOURCE
#include "stack_depth.h"

#include <pthread.h>
#include <stddef.h>

enum { RESERVE = 2 << 20, LAST_RESERVE = 128 << 10 };

_Thread_local char *low_stack, *end_of_thread_stack;

/* Return the lowest address of the thread's stack, and its size; NULL if the threads library does not know them. */
static char *lowest_address(size_t *size)
{
    void *lowest = NULL;
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return NULL;
    if (pthread_attr_getstack(&attributes, &lowest, size) != 0)
        lowest = NULL;
    pthread_attr_destroy(&attributes);
#elif defined(__APPLE__)
    *size = pthread_get_stacksize_np(pthread_self());
    lowest = (char *)pthread_get_stackaddr_np(pthread_self()) - *size;
#endif
    return lowest;
}

void find_stack(void)
{
    size_t size = 0;
    char *lowest = lowest_address(&size);
    if (!lowest) {
        low_stack = end_of_thread_stack = (char *)1;
        return;
    }
    low_stack = lowest + (size / 4 < RESERVE ? size / 4 : RESERVE);
    end_of_thread_stack = lowest + (size / 16 < LAST_RESERVE ? size / 16 : LAST_RESERVE);
}

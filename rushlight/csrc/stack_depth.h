/* The rest of the current thread's stack. */
#ifndef RUSHLIGHT_STACK_DEPTH_H
#define RUSHLIGHT_STACK_DEPTH_H

enum StackDepth { STACK_IS_FINE, STACK_IS_LOW, STACK_ENDS };

/* Two addresses, set at a thread's first query: below the first address the stack is low, below the second it ends. */
extern _Thread_local char *low_stack, *end_of_thread_stack;
void find_stack(void);

static inline enum StackDepth stack_depth(void)
{
    char here;
    char *volatile address = &here;
    if (!low_stack)
        find_stack();
    return address > low_stack ? STACK_IS_FINE : address > end_of_thread_stack ? STACK_IS_LOW : STACK_ENDS;
}

#endif

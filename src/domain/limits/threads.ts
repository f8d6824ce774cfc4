/** Threads that one user follows or does not want to follow. One more is refused. */
export const MAX_THREAD_SUBSCRIPTIONS = 10_000

/** Subscriptions on one page, unless fewer are asked for, and at most (MSC4308). */
export const THREAD_SUBSCRIPTIONS_PER_PAGE = 100
export const MAX_THREAD_SUBSCRIPTIONS_PER_PAGE = 512

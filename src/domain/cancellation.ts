/** Tells that nobody waits any more for what is being done. An `AbortSignal` is one; a request has one that costs less. */
export interface Cancellation {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

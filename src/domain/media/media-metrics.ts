/** Counts media work. */
export interface MediaMetrics {
  uploaded(bytes: number): void
  /** Remote media was requested; `bytes` is its size if it came. */
  fetched(bytes: number | undefined): void
  /** A thumbnail was made, or failed. */
  thumbnailed(outcome: 'made' | 'failed'): void
}

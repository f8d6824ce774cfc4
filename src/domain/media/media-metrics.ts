/** Counts of what happens with media. */
export interface MediaMetrics {
  uploaded(bytes: number): void
  /** A file of another server has been asked for: with its size where it came. */
  fetched(bytes: number | undefined): void
  /** A thumbnail was made, or could not be. */
  thumbnailed(outcome: 'made' | 'failed'): void
}

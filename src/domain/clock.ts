/** The time, passed in so that tests can move it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

/** Randomness, passed in for the same reason. */
export interface Random {
  bytes(count: number): Buffer
}

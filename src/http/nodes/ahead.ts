/**
 * In a request that is passed on: for how many further requests of its caller the node that passed it on would like to have tokens of the
 * rate limit. In the answer: how many it got. Neither is passed on from or to a client.
 */
export const AHEAD = 'x-hearth-ahead'

/** What a request that is passed on asks for. */
export interface TokensAhead {
  readonly count: number
  granted(count: number): void
}

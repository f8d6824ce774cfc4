/** What is not let in, and what of it there is at the moment. */
export interface ArrivalMetrics {
  /** A body that was not taken, and why. */
  refusedBody(reason: BodyRefusal): void
  /** A connection that was ended, and why. */
  endedConnection(reason: ConnectionEnd): void
  /** From now on these are read whenever somebody asks for the metrics. */
  watchBodies(bytes: () => number): void
  watchConnections(count: () => number): void
}

/** It was longer than the caller may send, came too slowly, or there was too much under way of its sender, or of all. */
export type BodyRefusal = 'too long' | 'too slow' | 'sender' | 'everybody'

/** There were too many of one address or in all, it made room for another, or it sent no request in time. */
export type ConnectionEnd = 'address' | 'all' | 'made room' | 'silent'

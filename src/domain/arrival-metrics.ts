/** Counts the bodies and connections that the server refuses, and shows how many bytes of bodies are in memory. */
export interface ArrivalMetrics {
  /** Counts a body that was refused, and why. */
  refusedBody(reason: BodyRefusal): void
  /** Counts a connection that was closed, and why. */
  endedConnection(reason: ConnectionEnd): void
  /** Registers a gauge. It is read whenever somebody fetches the metrics. @param arriving bytes of those that have not come whole yet */
  watchBodies(bytes: () => number, arriving: () => number): void
  /** What bodies hold that have not come whole yet. */
  arrivingBodyBytes(): number
  watchConnections(count: () => number): void
}

/** The body was longer than the caller may send, it came too slowly, or its sender or all senders together had too much in flight. */
export type BodyRefusal = 'too long' | 'too slow' | 'sender' | 'everybody'

/** There were too many connections from one address or in all, the connection made room for another, or it sent no request in time. */
export type ConnectionEnd = 'address' | 'all' | 'made room' | 'silent'

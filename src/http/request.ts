import type { Logger } from 'pino'
import type { JsonOffence } from '../core/json.ts'
import type { Dialect } from '../core/paths.ts'
import type { UiaProof } from '../domain/accounts/interactive-auth.ts'
import type { Requester } from '../domain/accounts/requester.ts'

/** What a request needs from the wire; read only when it is asked for. */
export interface Wire {
  /** The client's address, seen through trusted proxies only. */
  readonly ip: string
  readonly userAgent: string | undefined
  readonly id: string
  readonly log: Logger
  /** Aborted when the client goes away before its answer. */
  readonly signal: AbortSignal
  /** The operation's path without dialect and release, its parameters percent-encoded: `C/rooms/!r%3Ahs/send/m.text/1`. */
  readonly path: string
}

/** A request that has been parsed, authenticated and validated. */
export interface EndpointRequest<Params = unknown, Query = unknown, Body = unknown, By = Requester | undefined>
  extends Wire {
  readonly dialect: Dialect
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The first thing in the body that canonical JSON forbids. */
  readonly bodyOffence: JsonOffence | undefined
  readonly requester: By
  /** What user-interactive authentication established; undefined where the endpoint has none. */
  readonly uia: UiaProof | undefined
}

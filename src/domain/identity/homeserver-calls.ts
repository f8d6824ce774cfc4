import type { ServerName } from '../../core/ids.ts'
import type { JsonObject, JsonValue } from '../../core/json.ts'

export interface HomeserverAnswer {
  readonly status: number
  /** Undefined if it was not JSON. */
  readonly body: JsonValue | undefined
}

/** Requests of the identity service to homeservers, which it discovers as federation does. */
export interface HomeserverCalls {
  /**
   * @param request its path is relative to the root: `federation/v1/3pid/onbind`
   * @throws Error if the server cannot be reached
   */
  call(
    server: ServerName,
    request: { readonly method: 'PUT' | 'POST'; readonly path: string; readonly body: JsonObject },
  ): Promise<HomeserverAnswer>
}

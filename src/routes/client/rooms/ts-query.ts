import { type Static, Type } from '../../../core/shapes.ts'
import type { Requester } from '../../../domain/accounts/requester.ts'

/** The time of a bridged event on the other network, in milliseconds (application service API, "Timestamp massaging"). */
export const TS_KEYS = { ts: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })) }
export const TsQuery = Type.Object(TS_KEYS)

/** For application services only. */
export function tsOf({ appservice }: Requester, { ts }: Static<typeof TsQuery>): { readonly ts?: number } {
  return appservice === undefined || ts === undefined ? {} : { ts }
}

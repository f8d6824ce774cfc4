import { type Static, Type } from '../../../core/shapes.ts'
import type { Requester } from '../../../domain/accounts/requester.ts'
import { tsOf } from './ts-query.ts'

const DELAY = 'org.matrix.msc4140.delay'

/** `ts` is that of `TsQuery`; the delay, in milliseconds, is the form of the first drafts of MSC4140, which clients still use. */
export const SendQuery = Type.Object({
  ts: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  [DELAY]: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
})

/** The delay that a request asks for; undefined: it is to be sent now. */
export function delayOf(query: Static<typeof SendQuery>): number | undefined {
  return query[DELAY]
}

/** What a request to send is about, beside type and content. */
export function sentAt(requester: Requester, query: Static<typeof SendQuery>): { readonly ts?: number } {
  return tsOf(requester, query)
}

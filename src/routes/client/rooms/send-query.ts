import { MAX_STICKY_MS } from '../../../core/event/sticky.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Requester } from '../../../domain/accounts/requester.ts'
import { TS_KEYS, tsOf } from './ts-query.ts'

const DELAY = 'org.matrix.msc4140.delay'
const STICKY_MS = 'org.matrix.msc4354.sticky_duration_ms'

const DELAY_KEYS = { [DELAY]: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })) }
/** How long an event is to be sticky, in milliseconds (MSC4354). */
const STICKY_KEYS = {
  [STICKY_MS]: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_STICKY_MS })),
}

/** The delay, in milliseconds, is the form of the first drafts of MSC4140, which clients still use. */
export const SendQuery = Type.Object({ ...TS_KEYS, ...DELAY_KEYS })
export const MessageQuery = Type.Object({ ...TS_KEYS, ...DELAY_KEYS, ...STICKY_KEYS })
export const DelayedQuery = Type.Object({ ...TS_KEYS, ...STICKY_KEYS })

export function stickyOf({ [STICKY_MS]: stickyMs }: { readonly [STICKY_MS]?: number }): { readonly stickyMs?: number } {
  return stickyMs === undefined ? {} : { stickyMs }
}

/** The delay that a request asks for; undefined: it is to be sent now. */
export function delayOf(query: Static<typeof SendQuery>): number | undefined {
  return query[DELAY]
}

/** What a request to send is about, beside type and content. */
export function sentAt(requester: Requester, query: Static<typeof SendQuery>): { readonly ts?: number } {
  return tsOf(requester, query)
}

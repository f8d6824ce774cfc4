import { Type } from '../../../core/shapes.ts'

const Bound = Type.Union([Type.Integer(), Type.Null()])

/** How often and until when a registration token may be used; null for no bound. */
export const TokenBounds = { uses_allowed: Type.Optional(Bound), expiry_time: Type.Optional(Bound) } as const

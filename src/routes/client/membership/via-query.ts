import type { ServerName } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'

const Servers = Type.Optional(
  Type.Array(Type.Unsafe<ServerName>({ type: 'string', maxLength: 255 }), { maxItems: 100 }),
)

/** Servers through which a room may be reached; `server_name` is what `via` was called before release 1.12. */
export const ViaQuery = Type.Object({ via: Servers, server_name: Servers })

export function viaOf({ via = [], server_name = [] }: Static<typeof ViaQuery>): readonly ServerName[] {
  return [...via, ...server_name]
}

import type { EventId, RoomId } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Requester } from '../../../domain/accounts/requester.ts'
import type { StandbyServices } from '../../../domain/standby/services.ts'
import { rawReply } from '../../../http/endpoint.ts'

const Dir = Type.Optional(Type.Union([Type.Literal('b'), Type.Literal('f')]))

const Query = Type.Object({
  dir: Dir,
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  recurse: Type.Optional(Type.Boolean()),
  // The names before release 1.4 and 1.10.
  'org.matrix.msc3715.dir': Dir,
  'org.matrix.msc3981.recurse': Type.Optional(Type.Boolean()),
})

/** What the three endpoints have in common. */
export const RELATIONS = { auth: 'user', anywhere: true, guests: true, limited: 'other', query: Query } as const

interface Path {
  readonly roomId: RoomId
  readonly eventId: EventId
  readonly relType?: string
  readonly eventType?: string
}

export async function relationsReply(
  { roomReader, sync }: Pick<StandbyServices, 'roomReader' | 'sync'>,
  by: Requester,
  { roomId, eventId, relType, eventType }: Path,
  query: Static<typeof Query>,
) {
  const { dir, from, to, limit, recurse } = query
  const wish = {
    ...{ relType, eventType, from, to, limit },
    direction: dir ?? query['org.matrix.msc3715.dir'] ?? 'b',
    recurse: recurse ?? query['org.matrix.msc3981.recurse'] ?? false,
  }
  return rawReply(await sync.answer(by, () => roomReader.relations(by, roomId, eventId, wish)))
}

import { JsonBytes } from '../../../../core/json-bytes.ts'
import { wasOn } from '../position.ts'
import type { RoomExtension } from '../request.ts'
import { type ExtensionPart, type ExtensionScene, inScope, type ScopedRoom } from './extension.ts'

/** Who types in rooms that the user is in (MSC4508). */
export function typingPart(scene: ExtensionScene, extension: RoomExtension): ExtensionPart | undefined {
  const { look } = scene
  const { from, sliding, ignored } = look
  const isFresh = !wasOn(from, 'typing') || from?.scope !== sliding.scope
  let json: JsonBytes | undefined
  for (const room of inScope(scene.rooms, extension)) {
    const userIds = room.wanted.room.isJoined ? typingIn(scene, isFresh, room) : undefined
    if (userIds === undefined) continue
    const content = { user_ids: userIds.filter((userId) => !ignored?.has(userId)) }
    const isFirst = json === undefined
    json ??= new JsonBytes().text('{"rooms":{')
    json
      .key(room.answer.roomId, isFirst)
      .value(sliding.shape.hasEphemeralEvents ? { type: 'm.typing', content } : content)
  }
  return json && { name: extension.name, json: json.text('}}'), hasNews: true }
}

/** Undefined if the client knows it. */
function typingIn({ look }: ExtensionScene, isFresh: boolean, room: ScopedRoom): readonly string[] | undefined {
  const typing = look.sources.typing(room.answer.nid)
  if (typing === undefined) return undefined
  const sent = look.record.rooms.get(room.answer.nid)
  if (sent === undefined) return typing.userIds.length > 0 ? typing.userIds : undefined
  // The client may show who typed when it saw the room last.
  const isBack = isFresh || room.answer.isBegun || sent.upTo !== undefined
  return isBack || typing.position > (look.from?.stream.ephemeral ?? 0) ? typing.userIds : undefined
}

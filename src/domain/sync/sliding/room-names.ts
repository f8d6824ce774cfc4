import { avatarOf, roomNameOf } from '../../../core/event/content.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { SlidingLook } from './look.ts'
import type { StateChanges } from './state-changes.ts'

/** A room's name and avatar in some state, as far as they changed: fields of JSON, each with a comma before it. */
export async function namesIn(
  { sliding: { shape } }: SlidingLook,
  room: Room,
  state: StateMap,
  { types }: Pick<StateChanges, 'types'>,
): Promise<{ readonly json: string; readonly hasName: boolean }> {
  const [nameEvent, avatarEvent] = await Promise.all([
    room.stateEvent('m.room.name', '', state),
    room.stateEvent('m.room.avatar', '', state),
  ])
  const name = roomNameOf(nameEvent)
  const shown = (key: string, type: string, value: string | undefined): string => {
    if (types !== undefined && !types.has(type)) return ''
    const isGone = value === undefined && types !== undefined && shape.showsRemoved
    return value !== undefined || isGone ? `,"${key}":${JSON.stringify(value ?? null)}` : ''
  }
  const json = shown('name', 'm.room.name', name) + shown('avatar', 'm.room.avatar', avatarOf(avatarEvent))
  return { json, hasName: name !== undefined }
}

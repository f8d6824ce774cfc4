import { MATCH_ALL } from '../../../../core/filter.ts'
import { groupBy } from '../../../../core/group-by.ts'
import { JsonBytes } from '../../../../core/json-bytes.ts'
import { type AccountDataRow, accountDataBetween, accountDataOfRooms } from '../../../../store/accounts/account-data.ts'
import { MAX_ANSWER_PART_BYTES } from '../../../limits.ts'
import { writeDataList } from '../../account-data-section.ts'
import { changedPushRules } from '../../answer.ts'
import type { StreamPosition } from '../../token.ts'
import type { SlidingLook } from '../look.ts'
import { wasOn } from '../position.ts'
import type { RoomExtension } from '../request.ts'
import { byLedger, type ExtensionPart, type ExtensionScene, inScope, type ScopedRoom } from './extension.ts'

/** What may have changed. */
interface Suspects {
  /** The client has what is for all up to here. */
  readonly since: StreamPosition | undefined
  readonly rules: Promise<AccountDataRow> | undefined
  /** Rooms, by the ledger position up to which the client has theirs. */
  readonly rooms: readonly (readonly [after: number | undefined, rooms: readonly ScopedRoom[]])[]
}

/** What the user keeps on the server, for all and for rooms of any membership (MSC4548). */
export function accountDataPart(
  scene: ExtensionScene,
  extension: RoomExtension,
): undefined | Promise<ExtensionPart | undefined> {
  const { look } = scene
  const { sources, by, from, sliding } = look
  const since = from && wasOn(from, 'accountData') ? from.stream : undefined
  const isFresh = since === undefined || from?.scope !== sliding.scope
  const rules = changedPushRules({ ...look, since })
  const isQuiet = (after: number | undefined) =>
    after !== undefined && sources.userLedger.since(by.userNid, after) === false
  const groups = [...byLedger(look, isFresh, inScope(scene.rooms, extension))]
  const rooms = groups.filter(([after]) => !isQuiet(after))
  if (rules === undefined && rooms.length === 0 && isQuiet(since?.ledger)) return undefined
  return partOf(look, extension.name, { since, rules, rooms })
}

async function partOf(
  look: SlidingLook,
  name: string,
  { since, rules, rooms }: Suspects,
): Promise<ExtensionPart | undefined> {
  const [global, ofRooms, ruleset] = await Promise.all([globalData(look, since?.ledger), roomData(look, rooms), rules])
  const all = ruleset ? [...global, ruleset] : global
  if (all.length + ofRooms.length === 0) return undefined
  const json = new JsonBytes().text('{')
  if (all.length > 0) writeDataList(json.text('"global":'), look, all, MATCH_ALL)
  if (ofRooms.length > 0) {
    json.text(`${all.length > 0 ? ',' : ''}"rooms":{`)
    let isFirst = true
    for (const [roomId, rows] of groupBy(ofRooms, ({ room_id }) => room_id)) {
      writeDataList(json.key(roomId, isFirst), look, rows, MATCH_ALL)
      isFirst = false
    }
    json.text('}')
  }
  return { name, json: json.text('}'), hasNews: true }
}

function globalData({ sources, by, now }: SlidingLook, after = 0): Promise<readonly AccountDataRow[]> {
  return accountDataBetween(sources.db, by.userNid, after, now.ledger, { maxBytes: MAX_ANSWER_PART_BYTES, roomId: '' })
}

async function roomData(
  { sources, by, now }: SlidingLook,
  groups: Suspects['rooms'],
): Promise<readonly AccountDataRow[]> {
  const reading = groups.map(([after = 0, rooms]) => {
    const ids = rooms.map(({ answer }) => answer.roomId)
    return accountDataOfRooms(sources.db, by.userNid, ids, { after, upTo: now.ledger, maxBytes: MAX_ANSWER_PART_BYTES })
  })
  return (await Promise.all(reading)).flat()
}

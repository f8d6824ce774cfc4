import { MATCH_ALL } from '../../../../core/filter.ts'
import { groupBy } from '../../../../core/group-by.ts'
import { JsonBytes } from '../../../../core/json-bytes.ts'
import { type AccountDataRow, accountDataBetween, accountDataOfRooms } from '../../../../store/accounts/account-data.ts'
import { MAX_ANSWER_PART_BYTES } from '../../../limits.ts'
import { writeDataList } from '../../account-data-section.ts'
import { changedPushRules } from '../../answer.ts'
import { scopeOf, wasOn } from '../position.ts'
import type { RoomExtension } from '../request.ts'
import { byLedger, type ExtensionPart, type ExtensionScene, inScope } from './extension.ts'

/** What the user keeps on the server, for all and for rooms of any membership (MSC4548). */
export async function accountDataPart(
  scene: ExtensionScene,
  extension: RoomExtension,
): Promise<ExtensionPart | undefined> {
  const { look } = scene
  const since = look.from && wasOn(look.from, 'accountData') ? look.from.stream : undefined
  const rules = changedPushRules({ ...look, since })
  const [global, ofRooms] = await Promise.all([globalData(scene, since?.ledger), roomData(scene, extension)])
  const all = rules ? [...global, await rules] : global
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
  return { name: extension.name, json: json.text('}'), hasNews: true }
}

async function globalData({ look }: ExtensionScene, after: number | undefined): Promise<readonly AccountDataRow[]> {
  const { sources, by, now } = look
  if (after !== undefined && sources.userLedger.since(by.userNid, after) === false) return []
  const bounds = { maxBytes: MAX_ANSWER_PART_BYTES, roomId: '' }
  return accountDataBetween(sources.db, by.userNid, after ?? 0, now.ledger, bounds)
}

async function roomData({ look, rooms }: ExtensionScene, extension: RoomExtension): Promise<readonly AccountDataRow[]> {
  const { sources, by, now, from, sliding } = look
  const isFresh = !wasOn(from, 'accountData') || from?.scope !== scopeOf(sliding.extensions)
  const reading: Promise<AccountDataRow[]>[] = []
  for (const [after, some] of byLedger(look, isFresh, inScope(rooms, extension))) {
    if (after !== undefined && sources.userLedger.since(by.userNid, after) === false) continue
    const ids = some.map(({ answer }) => answer.roomId)
    const span = { after: after ?? 0, upTo: now.ledger, maxBytes: MAX_ANSWER_PART_BYTES }
    reading.push(accountDataOfRooms(sources.db, by.userNid, ids, span))
  }
  return (await Promise.all(reading)).flat()
}

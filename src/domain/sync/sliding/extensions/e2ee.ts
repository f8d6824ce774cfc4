import { JsonBytes } from '../../../../core/json-bytes.ts'
import { roomsWithEvents } from '../../active-rooms.ts'
import { type DeviceChanges, deviceChanges } from '../../device-changes.ts'
import type { Extension } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Whose devices changed, and the device's own keys (MSC4543). Counts come in every answer: clients read their absence in two ways. */
export async function e2eePart(scene: ExtensionScene, { name }: Extension): Promise<ExtensionPart> {
  const { sources, by, from } = scene.look
  const [changes, counts] = await Promise.all([changesOf(scene), sources.keyCounts.of(by)])
  const json = new JsonBytes().text('{')
  if (changes) json.text('"device_lists":').value({ changed: changes.changed, left: changes.left }).text(',')
  json.text(`"device_one_time_keys_count":${counts.oneTimeJson}`)
  json.text(`,"device_unused_fallback_key_types":${counts.unusedFallbackJson}}`)
  const count = changes === undefined ? 0 : changes.changed.length + changes.left.length
  const fell = from !== undefined && sources.keyCounts.fellSince(by, from.stream.ledger)
  return { name, json, hasNews: count > 0 || fell }
}

/** Undefined where the client has to begin with all users. */
async function changesOf({ look, joined, departed }: ExtensionScene): Promise<DeviceChanges | undefined> {
  const { sources, by, from, now } = look
  if (from === undefined) return undefined
  const since = from.stream
  const active = await roomsWithEvents(sources, since.events, [...joined.keys()])
  return deviceChanges({ sources, by, since, now }, joined, [...active], departed)
}

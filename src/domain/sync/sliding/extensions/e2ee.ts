import { JsonBytes } from '../../../../core/json-bytes.ts'
import type { KeyCounts } from '../../../keys/key-counts.ts'
import type { DeviceChanges } from '../../device-changes.ts'
import type { Extension } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Whose devices changed, and the device's own keys (MSC4543). Counts come in every answer: clients read their absence in two ways. */
export function e2eePart(scene: ExtensionScene, { name }: Extension): ExtensionPart | Promise<ExtensionPart> {
  const { sources, by } = scene.look
  // Without them, the client has to begin with all users.
  const changes = scene.deviceChanges()
  const counts = sources.keyCounts.of(by)
  if (!(changes instanceof Promise) && !(counts instanceof Promise)) return write(scene, name, changes, counts)
  return Promise.all([changes, counts]).then(([changed, counted]) => write(scene, name, changed, counted))
}

function write(
  { look: { sources, by, from } }: ExtensionScene,
  name: string,
  changes: DeviceChanges | undefined,
  counts: KeyCounts,
): ExtensionPart {
  const count = changes === undefined ? 0 : changes.changed.length + changes.left.length
  const lists = changes && (count === 0 ? NO_CHANGES : JSON.stringify({ changed: changes.changed, left: changes.left }))
  let text = lists === undefined ? '{' : `{"device_lists":${lists},`
  text += `"device_one_time_keys_count":${counts.oneTimeJson}`
  text += `,"device_unused_fallback_key_types":${counts.unusedFallbackJson}}`
  const fell = from !== undefined && sources.keyCounts.fellSince(by, from.stream.ledger)
  return { name, json: new JsonBytes().text(text), hasNews: count > 0 || fell }
}

const NO_CHANGES = '{"changed":[],"left":[]}'

import { JsonBytes } from '../../../../core/json-bytes.ts'
import { presenceEvents } from '../../answer.ts'
import type { StreamPosition } from '../../token.ts'
import { wasOn } from '../position.ts'
import type { Extension } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Who is there, as classic sync tells it: changes, and those who came to share a room. No text of the proposal says more. */
export function presencePart(
  scene: ExtensionScene,
  extension: Extension,
): ExtensionPart | undefined | Promise<ExtensionPart | undefined> {
  const { look } = scene
  const since = look.from && wasOn(look.from, 'presence') ? look.from.stream : undefined
  // A client that begins is told of all.
  const changes = since && scene.deviceChanges()
  if (changes instanceof Promise) return changes.then(({ neighbours }) => write(scene, extension, since, neighbours))
  return write(scene, extension, since, changes?.neighbours ?? [])
}

function write(
  { look, joined }: ExtensionScene,
  { name }: Extension,
  since: StreamPosition | undefined,
  neighbours: readonly number[],
): ExtensionPart | undefined {
  const events = presenceEvents({ ...look, since }, joined, neighbours)
  if (events.length === 0) return undefined
  return { name, json: new JsonBytes().text('{"events":').value(events).text('}'), hasNews: true }
}

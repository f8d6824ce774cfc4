import { JsonBytes } from '../../../../core/json-bytes.ts'
import { presenceEvents } from '../../answer.ts'
import { wasOn } from '../position.ts'
import type { Extension } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Who is there, as classic sync tells it. No text of the proposal says more. */
export function presencePart({ look, joined }: ExtensionScene, { name }: Extension): ExtensionPart | undefined {
  const since = look.from && wasOn(look.from, 'presence') ? look.from.stream : undefined
  const events = presenceEvents({ ...look, since }, joined, [])
  if (events.length === 0) return undefined
  return { name, json: new JsonBytes().text('{"events":').value(events).text('}'), hasNews: true }
}

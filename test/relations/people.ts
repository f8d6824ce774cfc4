import { inRoom, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let sent = 0

/** Sends an event that relates to another one. */
export async function relate(
  by: Person,
  room: string,
  target: string,
  relType: string,
  { type = 'm.room.message', key, ...content }: Json = {},
): Promise<string> {
  const relation = { rel_type: relType, event_id: target, ...(key !== undefined && { key }) }
  const body = { msgtype: 'm.text', body: `about ${relType}`, ...content, 'm.relates_to': relation }
  return (await by.call('PUT', inRoom(room, `/send/${type}/relate-${++sent}`), body)).event_id
}

export const reply = (by: Person, room: string, root: string, text = 'reply') =>
  relate(by, room, root, 'm.thread', { body: text })
export const edit = (by: Person, room: string, target: string, text = 'edited') =>
  relate(by, room, target, 'm.replace', { body: `* ${text}`, 'm.new_content': { msgtype: 'm.text', body: text } })
export const react = (by: Person, room: string, target: string, key = '👍') =>
  relate(by, room, target, 'm.annotation', { type: 'm.reaction', key })

export async function redact(by: Person, room: string, target: string): Promise<void> {
  await by.call('PUT', inRoom(room, `/redact/${encodeURIComponent(target)}/redact-${++sent}`), {})
}

export const relationsAt = (room: string, target: string, rest = '') =>
  `/_matrix/client/v1${inRoom(room, `/relations/${encodeURIComponent(target)}${rest}`)}`
export const threadsAt = (room: string, query = '') => `/_matrix/client/v1${inRoom(room, `/threads${query}`)}`

/** What is bundled with an event. */
export async function bundleOf(by: Person, room: string, eventId: string): Promise<Json> {
  const { unsigned } = await by.call('GET', inRoom(room, `/event/${encodeURIComponent(eventId)}`))
  return unsigned['m.relations']
}

/** All pages of a list of events, by their ids. */
export async function pagesOf(by: Person, path: string): Promise<string[]> {
  const ids: string[] = []
  for (let from: string | undefined; ; ) {
    const page = await by.call('GET', from === undefined ? path : `${path}&from=${from}`)
    ids.push(...page.chunk.map(({ event_id }: Json) => event_id))
    from = page.next_batch
    if (from === undefined) return ids
  }
}

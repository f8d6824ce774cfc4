import type { Json } from '../../../support/api.ts'

/**
 * What is wrong with the shape of an answer in the unstable form, by the types that matrix-rust-sdk reads it with: one field of
 * another type makes that client drop the whole answer. A field that may be absent may not be null, but for the avatar.
 */
export function shapeProblems(answer: Json): string[] {
  const problems: string[] = []
  check(ANSWER, answer, '', problems)
  return problems
}

type Check = (value: Json, path: string, problems: string[]) => void

const check = (how: Check, value: Json, path: string, problems: string[]) => how(value, path, problems)

const that =
  (what: string, isSo: (value: Json) => boolean): Check =>
  (value, path, problems) => {
    if (!isSo(value)) problems.push(`${path}: ${JSON.stringify(value)?.slice(0, 80)} is no ${what}`)
  }

const isObject = (value: Json) => typeof value === 'object' && value !== null && !Array.isArray(value)
const string = that('string', (value) => typeof value === 'string')
const boolean = that('boolean', (value) => typeof value === 'boolean')
const count = that('count', (value) => Number.isSafeInteger(value) && value >= 0)
const roomId = that('room id', (value) => /^![^\0]{1,254}$/.test(value))
const userId = that('user id', (value) => /^@[^:\0]*:[^\0]{1,250}$/.test(value))
const mxcUri = that('string or null', (value) => value === null || typeof value === 'string')

const listOf =
  (item: Check): Check =>
  (value, path, problems) => {
    if (!Array.isArray(value)) problems.push(`${path} is no list`)
    else for (const [index, each] of value.entries()) item(each, `${path}[${index}]`, problems)
  }

const mapOf =
  (key: Check, item: Check): Check =>
  (value, path, problems) => {
    if (!isObject(value)) return void problems.push(`${path} is no object`)
    for (const [name, each] of Object.entries(value)) {
      key(name, `${path} key`, problems)
      item(each, `${path}.${name}`, problems)
    }
  }

/** An object with these fields, of which those that end in `!` must be there. Others are passed over. */
const object =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value, path, problems) => {
    if (!isObject(value)) return void problems.push(`${path} is no object`)
    for (const [name, how] of Object.entries(fields)) {
      const key = name.replace('!', '')
      if (value[key] !== undefined) how(value[key], `${path}.${key}`, problems)
      else if (name.endsWith('!')) problems.push(`${path}.${key} is missing`)
    }
  }

const event = object({ 'type!': string, 'sender!': userId, 'content!': object({}) })
const timelineEvent = object({
  ...{ 'type!': string, 'sender!': userId, 'content!': object({}), 'event_id!': string, 'origin_server_ts!': count },
  ...{ state_key: string, unsigned: object({}) },
})
const stateEvent: Check = (value, path, problems) => {
  timelineEvent(value, path, problems)
  object({ 'state_key!': string })(value, path, problems)
}
const dataEvent = object({ 'type!': string, 'content!': object({}) })

const ROOM = object({
  ...{ name: string, avatar: mxcUri, initial: boolean, is_dm: boolean, limited: boolean, prev_batch: string },
  ...{ notification_count: count, highlight_count: count, joined_count: count, invited_count: count },
  ...{ num_live: count, bump_stamp: count },
  invite_state: listOf(object({ 'type!': string, 'state_key!': string, 'sender!': userId, 'content!': object({}) })),
  timeline: listOf(timelineEvent),
  required_state: listOf(stateEvent),
  heroes: listOf(object({ 'user_id!': userId, displayname: string, avatar_url: string })),
})

const EXTENSIONS = object({
  to_device: object({ 'next_batch!': string, events: listOf(event) }),
  e2ee: object({
    device_lists: object({ changed: listOf(userId), left: listOf(userId) }),
    device_one_time_keys_count: mapOf(string, count),
    device_unused_fallback_key_types: listOf(string),
  }),
  account_data: object({ global: listOf(dataEvent), rooms: mapOf(roomId, listOf(dataEvent)) }),
  receipts: object({ rooms: mapOf(roomId, dataEvent) }),
  typing: object({ rooms: mapOf(roomId, dataEvent) }),
})

const ANSWER = object({
  'pos!': string,
  txn_id: string,
  lists: mapOf(string, object({ 'count!': count })),
  rooms: mapOf(roomId, ROOM),
  extensions: EXTENSIONS,
})

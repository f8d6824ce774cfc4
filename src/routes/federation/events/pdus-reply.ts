import type { JsonObject } from '../../../core/json.ts'
import { writeJson } from '../../../core/large-integers.ts'
import { type RawReply, rawReply } from '../../../http/endpoint.ts'

/** An object with lists of events, copied from their JSON texts, and other keys. */
export function pdusReply(lists: Readonly<Record<string, readonly string[]>>, rest: JsonObject = {}): RawReply {
  return rawReply({ body: `{${pdusMembers(lists, rest)}}` })
}

/** The same as the second element of a list, as the first version of some operations answers. */
export function pdusReplyV1(lists: Readonly<Record<string, readonly string[]>>, rest: JsonObject = {}): RawReply {
  return rawReply({ body: `[200,{${pdusMembers(lists, rest)}}]` })
}

function pdusMembers(lists: Readonly<Record<string, readonly string[]>>, rest: JsonObject): string {
  const events = Object.entries(lists).map(([key, texts]) => `${JSON.stringify(key)}:[${texts.join(',')}]`)
  const others = Object.entries(rest).map(([key, value]) => `${JSON.stringify(key)}:${writeJson(value)}`)
  return [...others, ...events].join(',')
}

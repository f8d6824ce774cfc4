import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { readKeyAnswer } from '../../domain/federation/key-answer.ts'
import type { Federation } from '../../outbound/federation.ts'
import { type Finding, ok, problem, warning } from '../doctor/finding.ts'
import { MAX_BYTES, TIMEOUT_MS } from '../doctor/reach.ts'

const HOUR_MS = 3_600_000
const LIMITS = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES }

/** Checks the server's published keys and their signatures. */
export async function checkKeys(server: ServerName, federation: Federation, now: number): Promise<readonly Finding[]> {
  const answer = await federation.request(server, { method: 'GET', path: 'key/v2/server', ...LIMITS })
  const advice = 'its operator has to see why: nothing that it says can be believed without its keys'
  if (!answer.ok) return [problem('keys', answer.detail, advice)]
  const body = isObject(answer.body) ? answer.body : {}
  if (answer.status !== 200) return [problem('keys', `answers ${answer.status} when asked for its keys`, advice)]
  if (body.server_name !== server) {
    const text = `what is there calls itself ${shown(body.server_name)}, and not ${server}`
    return [problem('keys', text, 'ask for the name after the colon of its users; or its operator has mixed two up')]
  }
  const keys = readKeyAnswer(server, body, now)
  if (keys === undefined) return [problem('keys', 'are not signed by a key among them, or not well-formed', advice)]
  const current = keys.filter(({ isOld }) => !isOld).map(({ keyId }) => shown(keyId))
  const old = keys.length - current.length
  const text = `${current.join(', ')}${old === 0 ? '' : `, and ${old} out of use`}; signed by ${server}`
  return [ok('keys', text), validity(Number(body.valid_until_ts), now)]
}

function validity(until: number, now: number): Finding {
  const subject = 'validity'
  const left = Math.round((until - now) / HOUR_MS)
  if (until < now) {
    const advice = 'see whether the clocks agree, there and here ("doctor" looks at ours)'
    return problem(subject, `the keys have run out, at ${new Date(until).toISOString()}`, advice)
  }
  if (until - now >= HOUR_MS) return ok(subject, `the keys are good for ${left} more hours`)
  return warning(subject, 'the keys are good for less than an hour', 'its operator should let them be good for longer')
}

/** Sends a signed request. To verify it, the other server needs our keys, and fetches them from us unless it has them already. */
export async function checkTrust(server: ServerName, federation: Federation, ownName: ServerName): Promise<Finding> {
  const path = `federation/v1/query/profile?user_id=${encodeURIComponent(`@hearth-check:${server}`)}&field=displayname`
  const answer = await federation.request(server, { method: 'GET', path, signed: true, ...LIMITS })
  const subject = 'signature'
  if (!answer.ok) return problem(subject, answer.detail, 'ask again; it answered a moment ago')
  const { errcode, error } = isObject(answer.body) ? answer.body : ({} as JsonObject)
  const words = errcode === undefined ? '' : `: ${shown(errcode)}, ${shown(error)}`
  const { status } = answer
  if (status === 401) {
    const advice = `most likely it cannot get our keys from us: "doctor" shows how others find ${ownName}`
    return problem(subject, `it does not believe our signature (401${words})`, advice)
  }
  if (status === 429 || status >= 500) return warning(subject, `it answers ${status}${words}`, 'ask again later')
  if (status === 403) {
    const advice = 'if its operator shuts this server out, only they can let it in; profiles alone are no loss'
    return warning(subject, `it answers 403${words}`, advice)
  }
  return ok(subject, `it believes our signature (${status}${words}): it knows our keys, by asking us now or before`)
}

/** Text of another server, made safe for a terminal. */
function shown(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value.replace(/[^\x20-\x7e]/g, '').slice(0, 200) : '(nothing)'
}

import type { Json } from '../../test/support/api.ts'
import { type Line, placeholder, writeScript } from '../../test/support/rust-sdk/script.ts'
import type { Stage } from '../../test/support/rust-sdk/stage.ts'
import type { Moment, Recorded } from './recording-proxy.ts'

/** What changes anything, or is answered by sliding sync. The rest, which only reads, need not be sent again. */
const KEPT =
  /\/sync\?|\/login$|\/createRoom$|\/keys\/(upload|claim)$|\/sendToDevice\/|\/rooms\/.*\/(send|redact|typing|receipt|read_markers|join|leave|invite)(\/|$)|\/join\//

/** Without escapes: whoever plays it makes them again. */
const plain = (path: string) =>
  path
    .split('/')
    .map((part) => decodeURIComponent(part))
    .join('/')

const isSync = ({ path }: Recorded) => /\/sync\?/.test(path)

/**
 * The requests that clients sent, as a script that can be played to another server. Ids and tokens that came from this server stand in
 * it as places of earlier answers.
 */
export function fixtureOf(moments: readonly Moment[], stage: Stage): string {
  const known = new Map<string, string>(stage.rooms.map((id, index) => [id, placeholder(`room ${index}`)]))
  const sessions = new Map([
    [stage.anna.token, 'anna at first'],
    [stage.ben.token, 'ben at first'],
  ])
  const sinces = new Map<string, string>()
  const bodies: Json[] = []
  const places = new Map<string, number>()
  const lines: Line[] = []

  const hide = (text: string) => [...known].reduce((hidden, [value, name]) => hidden.replaceAll(value, name), text)

  function placeOf(body: Json): number {
    const text = hide(JSON.stringify(body))
    const place = places.get(text) ?? bodies.push(JSON.parse(text)) - 1
    places.set(text, place)
    return place
  }

  function learn({ id, answer, body, path, token }: Recorded): void {
    if (answer === undefined || answer === null) return
    if (path.endsWith('/login') && answer.access_token) sessions.set(answer.access_token, body.identifier.user)
    for (const name of ['event_id', 'room_id']) {
      if (typeof answer[name] === 'string')
        known.set(answer[name], known.get(answer[name]) ?? placeholder(`${id} ${name}`))
    }
    const since = answer.extensions?.to_device?.next_batch
    if (since !== undefined) sinces.set(`${token} ${since}`, placeholder(`${id} since`))
    if (typeof answer.pos === 'string') known.set(answer.pos, placeholder(`${id} pos`))
  }

  /** The token of messages to the device may look like anything, and like that of another device. */
  function withoutSince({ body, token }: Recorded): Json {
    const since = body.extensions?.to_device?.since
    if (since === undefined) return body
    const { extensions } = body
    const name = sinces.get(`${token} ${since}`) ?? since
    return { ...body, extensions: { ...extensions, to_device: { ...extensions.to_device, since: name } } }
  }

  for (const moment of moments) {
    if (moment.kind === 'event') {
      lines.push([moment.name])
      continue
    }
    const { request } = moment
    if (!KEPT.test(request.path)) continue
    if (moment.kind === 'start') {
      const session = sessions.get(request.token ?? '') ?? ''
      const body = request.body === undefined ? null : placeOf(isSync(request) ? withoutSince(request) : request.body)
      lines.push(['start', request.id, session, request.method, hide(plain(request.path)), body])
    } else {
      learn(request)
      lines.push(['end', request.id, request.outcome ?? 'lost', request.status])
    }
  }
  return writeScript({ bodies, lines })
}

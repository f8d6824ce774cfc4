import type { Json } from '../../test/support/api.ts'
import { type Line, placeholder, writeScript } from '../../test/support/rust-sdk/script.ts'
import type { Recorded, RecordingProxy } from './recording-proxy.ts'

/** What browsers ask for is done by a browser again. Devices that meet do so by what they alone can read. */
const LEFT_OUT = /^\/_hearth\/(?:account|oauth\/(?:authorize|consent))|rendezvous/
/** What an answer gives a client to send back. */
const SECRETS = ['client_id', 'access_token', 'refresh_token', 'device_code', 'user_code']

/** A device asks again and again whether it may come in: only the last time counts. */
const isEarlyPoll = ({ form, status }: Recorded) =>
  form?.grant_type === 'urn:ietf:params:oauth:grant-type:device_code' && status !== 200

/**
 * The requests by which clients signed in, as a script that can be played to another server. Secrets that came from this server stand in
 * it as places of earlier answers, and the code that a browser brought back as that of the decision before.
 */
export function signInFixtureOf({ moments, baseUrl }: Pick<RecordingProxy, 'moments' | 'baseUrl'>): string {
  const known = new Map<string, string>()
  const bodies: Json[] = []
  const lines: Line[] = []
  const hide = (text: string) => [...known].reduce((hidden, [value, name]) => hidden.replaceAll(value, name), text)

  function learn({ id, answer }: Recorded): void {
    for (const name of SECRETS) {
      const value = answer?.[name]
      if (typeof value === 'string' && !known.has(value)) known.set(value, placeholder(`${id} ${name}`))
    }
  }

  for (const moment of moments) {
    if (moment.kind === 'event') {
      lines.push([hide(moment.name).replaceAll(baseUrl, '')])
      continue
    }
    const { request } = moment
    if (LEFT_OUT.test(request.path) || isEarlyPoll(request)) continue
    if (moment.kind === 'start') {
      const { id, token, method, path, form, body } = request
      // One code is in each form that has any, and it is the browser's newest.
      const sent = form === undefined ? body : { form: form.code === undefined ? form : { ...form, code: '' } }
      const place = sent === undefined ? null : bodies.push(JSON.parse(hide(JSON.stringify(sent)))) - 1
      lines.push(['start', id, token === undefined ? '' : hide(token), method, hide(path), place])
    } else {
      learn(request)
      lines.push(['end', request.id, request.outcome ?? 'lost', request.status])
    }
  }
  return writeScript({ bodies, lines })
}

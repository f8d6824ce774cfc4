import { buildConsole } from '../../scripts/build-console.mjs'
import { type Office, openOffice, registerBySecret, SECRET } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, sendText } from '../support/api.ts'
import { Browsing, type Page } from '../support/browsing.ts'
import { type Neighbour, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

export const CONSOLE = '/_hearth/admin/'

export interface ConsoleWorld extends Office {
  readonly origin: string
  /** A browser without any cookies. */
  browsing(): Browsing
}

/** A server with an administrator `boss`, and the console as it is built from this tree. */
export async function openConsoleWorld(overrides: Parameters<typeof openOffice>[0] = {}): Promise<ConsoleWorld> {
  await buildConsole()
  const office = await openOffice(overrides)
  const origin = office.server.baseUrl
  return { ...office, origin, browsing: () => new Browsing(origin) }
}

/** Opens the console as the administrator. */
export async function signedIn(browser: Browsing): Promise<Page> {
  return browser.signIn(await browser.open(CONSOLE), 'boss')
}

/** What the server wrote into the page for its script. */
export function factsIn({ text }: Pick<Page, 'text'>): {
  readonly token: string
  readonly user_id: string
  readonly has_password: boolean
} {
  const written = /<meta name="hearth" content="([^"]*)">/.exec(text)?.[1] ?? ''
  return JSON.parse(written.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))))
}

/** A call to the admin API with a browser's cookies, and with the console's token where one is given. */
export async function act(
  { origin }: Pick<ConsoleWorld, 'origin'>,
  browser: Browsing,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
) {
  const cookie = [...browser.jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
  const answer = await fetch(origin + path, {
    method,
    headers: { cookie, ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Json, headers: answer.headers }
}

export const bearer = (page: Pick<Page, 'text'>) => ({ authorization: `Bearer ${factsIn(page).token}` })

/** Two servers that know each other, with people, a room, a report and a file: something to look at. */
export interface Town {
  readonly alpha: Neighbour
  readonly beta: Neighbour
  readonly boss: Account
  readonly alice: Account
  readonly bob: Account
  readonly garden: string
  close(): Promise<void>
}

const enc = encodeURIComponent

export async function openTown(): Promise<Town> {
  await buildConsole()
  const street = openNeighbourhood()
  const values = { registration: { enabled: true, shared_secret: SECRET } }
  const [alpha, beta] = await Promise.all([street.open(values), street.open(values)])
  const boss = await registerBySecret(alpha.api, 'boss', true)
  const [alice, mallory, bob, carol] = await Promise.all([
    alpha.person('alice'),
    alpha.person('mallory'),
    beta.person('bob'),
    beta.person('carol'),
  ])
  const garden = await createRoom(alpha.api, alice.token, {
    name: 'Garden',
    topic: 'Things that grow',
    preset: 'public_chat',
    visibility: 'public',
    room_alias_name: 'garden',
  })
  await join(alpha.api, mallory.token, garden)
  // Carol keeps her server in the room when Bob is banned.
  for (const { token } of [bob, carol]) {
    await beta.api.call('POST', `/join/${enc(garden)}?server_name=${enc(alpha.name)}`, { token, body: {} })
  }
  for (let i = 0; i < 5; i += 1) await sendText(alpha.api, alice.token, garden, `a${i}`, `message ${i}`)
  const spam = await sendText(alpha.api, mallory.token, garden, 'm1', 'Buy <script>alert(1)</script> now')
  await alpha.api.call('POST', `/rooms/${enc(garden)}/report/${enc(spam)}`, {
    token: alice.token,
    body: { reason: 'This is spam.' },
  })
  await fetch(`${alpha.server.baseUrl}/_matrix/media/v3/upload?filename=seed.txt`, {
    method: 'POST',
    headers: { authorization: `Bearer ${mallory.token}`, 'content-type': 'text/plain' },
    body: 'a seed',
  })
  return { alpha, beta, boss, alice, bob, garden, close: street.close }
}

/** Bob is banned while his server does not hear of it: what he says meanwhile is refused here when it comes. */
export async function haveBobRefused({ alpha, beta, alice, bob, garden }: Town): Promise<void> {
  const { handler } = beta.front
  beta.front.handler = (_request, response) => response.writeHead(503).end()
  await alpha.api.call('POST', `/rooms/${enc(garden)}/ban`, {
    token: alice.token,
    body: { user_id: bob.userId, reason: 'He shouts.' },
  })
  await sendText(beta.api, bob.token, garden, 'b1', 'I am still here!')
  const { db } = alpha.server.database
  await waitUntil('the message of the banned user', async () => {
    const rows = await db.query("SELECT 1 FROM event WHERE standing = 'soft-failed'")
    return rows.length > 0
  })
  beta.front.handler = handler
}

import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

/** People who sign in for a while, so many a second, whether the server keeps up or not. */
export interface SignInsTask {
  readonly baseUrl: string
  readonly kind: 'oauth' | 'password'
  readonly clientId: string
  readonly password: string
  readonly names: readonly string[]
  readonly perSecond: number
  readonly seconds: number
}

export interface SignInsResult {
  readonly done: number
  /** Told to come again later. */
  readonly refused: number
  /** Why others failed, and how often. */
  readonly failures: Readonly<Record<string, number>>
  /** Without an answer a while after the end. */
  readonly waiting: number
  readonly times: readonly number[]
}

export const REDIRECT = 'https://app.example.com/callback'

const PATIENCE_MS = 5_000
let over = new AbortController()

type Cookies = Map<string, string>

interface Page {
  readonly status: number
  readonly location: string
  readonly text: string
}

async function open(cookies: Cookies, address: string, form?: Record<string, string>): Promise<Page> {
  const answer = await fetch(address, {
    redirect: 'manual',
    signal: over.signal,
    headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  })
  for (const line of answer.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    cookies.set(name, value)
  }
  const { status, headers } = answer
  return { status, location: headers.get('location') ?? '', text: await answer.text() }
}

function hidden({ text }: Page): Record<string, string> {
  const inputs = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  return Object.fromEntries(inputs.map(([, name = '', value = '']) => [name, value]))
}

/** A browser in which somebody is signed in to the pages of the server. */
async function browserOf({ baseUrl, password }: SignInsTask, username: string): Promise<Cookies> {
  const cookies: Cookies = new Map()
  const address = `${baseUrl}/_hearth/account/sign-in`
  const page = await open(cookies, address)
  for (;;) {
    const answer = await open(cookies, address, { ...hidden(page), username, password })
    if (answer.status === 303) return cookies
    if (answer.status !== 429) throw new Error(`the pages answer ${answer.status}`)
    await pause(500)
  }
}

/** One sign-in of an app: the request, the question, the answer, the code, the tokens. */
async function byOauth({ baseUrl, clientId }: SignInsTask, cookies: Cookies, device: string): Promise<string> {
  const verifier = randomBytes(48).toString('base64url')
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    scope: `urn:matrix:client:api:* urn:matrix:client:device:${device}`,
    state: 'x',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const at = (path: string) => new URL(path, baseUrl).href
  const asked = await open(cookies, `${baseUrl}/_hearth/oauth/authorize?${parameters}`)
  if (asked.status !== 303) return outcome('authorize', asked)
  const consent = at(asked.location)
  const question = await open(cookies, consent)
  if (question.status !== 200) return outcome('question', question)
  const decided = await open(cookies, consent, { ...hidden(question), decision: 'allow' })
  if (decided.status !== 303) return outcome('decision', decided)
  const back = await open(cookies, at(decided.location))
  const code = URL.canParse(back.location) && new URL(back.location).searchParams.get('code')
  if (!code) return outcome('return', back)
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    client_id: clientId,
    code_verifier: verifier,
  })
  const answer = await fetch(`${baseUrl}/_hearth/oauth/token`, { method: 'POST', body, signal: over.signal })
  return outcome('token', { status: answer.status, text: await answer.text() })
}

async function byPassword({ baseUrl, password }: SignInsTask, user: string, device_id: string): Promise<string> {
  const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password, device_id }
  const answer = await fetch(`${baseUrl}/_matrix/client/v3/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    signal: over.signal,
    body: JSON.stringify(body),
  })
  return outcome('login', { status: answer.status, text: await answer.text() })
}

const DONE = 'done'
const REFUSED = 'refused'

/** What came of a step: `done`, `refused` by a limit, or how it failed. */
function outcome(step: string, { status, text }: Pick<Page, 'status' | 'text'>): string {
  if (status === 429) return REFUSED
  if (status === 200) return DONE
  const heading = /<h1>([^<]*)/.exec(text)?.[1]
  return `${step}: ${status} ${heading ?? text.slice(0, 100)}`
}

async function signIns(task: SignInsTask, browsers: readonly Cookies[]): Promise<SignInsResult> {
  const times: number[] = []
  let refused = 0
  let ended = 0
  let isOver = false
  const failures: Record<string, number> = {}
  const begun = performance.now()
  const all: Promise<void>[] = []

  async function one(number: number): Promise<void> {
    const person = number % task.names.length
    const since = performance.now()
    // A browser does one thing at a time: its cookies name one authorisation.
    const cookies = new Map(browsers[person])
    const asking =
      task.kind === 'oauth'
        ? byOauth(task, cookies, `BENCHDEVICE${person}`)
        : byPassword(task, task.names[person]!, `BENCHDEVICE${person}`)
    const result = await asking.catch((error: Error) => String(error.cause ?? error))
    if (isOver) return
    ended++
    if (result === DONE) times.push(performance.now() - since)
    else if (result === REFUSED) refused++
    else failures[result] = (failures[result] ?? 0) + 1
  }

  for (let number = 0; number < task.perSecond * task.seconds; number++) {
    const due = begun + (1_000 * number) / task.perSecond
    const wait = due - performance.now()
    if (wait > 0) await pause(wait)
    all.push(one(number))
  }
  await Promise.race([Promise.all(all), pause(PATIENCE_MS)])
  isOver = true
  over.abort()
  await Promise.all(all)
  return { done: times.length, refused, failures, waiting: all.length - ended, times }
}

const browsers = new Map<string, Cookies>()

process.on('message', async (task: SignInsTask) => {
  over = new AbortController()
  if (task.kind === 'oauth') {
    for (const name of task.names) if (!browsers.has(name)) browsers.set(name, await browserOf(task, name))
  }
  // With nothing to do, it has only prepared the browsers.
  const result = await signIns(
    task,
    task.names.map((name) => browsers.get(name) ?? new Map()),
  )
  process.send?.(result)
})

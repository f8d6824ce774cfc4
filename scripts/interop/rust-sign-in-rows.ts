import type { Json } from '../../test/support/api.ts'
import { type Browsing, leadsTo } from '../../test/support/browsing.ts'
import { waitUntil } from '../../test/support/wait.ts'
import type { RecordingProxy } from './recording-proxy.ts'
import type { RustClients } from './rust-clients.ts'
import type { Row } from './rust-sdk.ts'
import { expect } from './seen.ts'

/** Anna, who has a browser, and clients made of matrix-rust-sdk, which know nobody yet. */
export interface SignInScene {
  readonly clients: RustClients
  readonly proxy: RecordingProxy
  readonly browser: Browsing
  /** A client of this name begins. */
  come(who: string): Promise<void>
  /** Has all access tokens expire. */
  expire(): Promise<void>
}

const ANNA = '@anna:localhost'
/** An address that only the app has, as on phones. */
const REDIRECT = 'com.example.app:/callback'
const APP = 'computer'
const PHONE = 'phone'

const WITHIN_MS = 40_000
const until = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
  waitUntil(what, ask, { timeoutMs: WITHIN_MS, everyMs: 100 })

/** What the person in front of the browser decides, when an app has sent them to this address; gives where they go then. */
async function decide({ browser, proxy }: SignInScene, address: string, decision: 'allow' | 'deny'): Promise<string> {
  proxy.note(`${decision} ${address}`)
  let page = await browser.open(address)
  if (page.url.pathname === '/_hearth/account/sign-in') page = await browser.signIn(page, 'anna')
  expect(`the page asks (${page.heading})`, page.text.includes('value="allow"'))
  return leadsTo(await browser.submit(page, { decision }))
}

async function signIn(scene: SignInScene): Promise<void> {
  const { clients } = scene
  await scene.come(APP)
  const { address } = await clients.ask(APP, 'ask', { redirect: REDIRECT })
  const answer = await decide(scene, address, 'allow')
  const { user, device } = await clients.ask(APP, 'finish', { answer })
  expect('it is Anna', user === ANNA)
  const own = await clients.ask(APP, 'whoami')
  expect('the server says so too', own.user === ANNA && own.device === device)
}

async function sayNo(scene: SignInScene): Promise<void> {
  const { clients } = scene
  await scene.come('refused')
  const { address } = await clients.ask('refused', 'ask', { redirect: REDIRECT })
  const answer = await decide(scene, address, 'deny')
  const problem = await clients.ask('refused', 'finish', { answer }).then(
    () => 'nothing',
    (error: Error) => error.message,
  )
  expect(`the client knows that she said no (${problem})`, /access_denied|cancel/i.test(problem))
}

const tokensOf = ({ clients }: SignInScene, who: string): Promise<Json> => clients.ask(who, 'tokens')

async function refresh(scene: SignInScene): Promise<void> {
  const before = await tokensOf(scene, APP)
  await scene.clients.ask(APP, 'refresh')
  const after = await tokensOf(scene, APP)
  expect(
    'both tokens are new',
    Object.keys(before).every((name) => before[name] !== after[name]),
  )
  expect('the new one is Anna', (await scene.clients.ask(APP, 'whoami')).user === ANNA)
}

async function expire(scene: SignInScene): Promise<void> {
  const before = await tokensOf(scene, APP)
  await scene.expire()
  expect('the client is still in', (await scene.clients.ask(APP, 'whoami')).user === ANNA)
  expect('with another token', (await tokensOf(scene, APP)).access_token !== before.access_token)
}

/** The computer shows a code, the phone reads it, and the browser asks whether that is right. */
async function scan(scene: SignInScene): Promise<void> {
  const { clients } = scene
  await clients.ask(APP, 'bootstrap')
  await clients.ask(APP, 'show-code')
  const qr = (who: string): Promise<Json> => clients.ask(who, 'qr')
  const code = await until('a code', async () => (await qr(APP)).shown ?? undefined)
  await scene.come(PHONE)
  await clients.ask(PHONE, 'read-code', { code, redirect: REDIRECT })
  const digits = await until('two digits', async () => (await qr(PHONE)).digits ?? undefined)
  await until('that digits are wanted', async () => (await qr(APP)).areDigitsWanted)
  await clients.ask(APP, 'type-digits', { digits })
  const address = await until('an address for the browser', async () => {
    const { address: given, problem } = await qr(APP)
    expect(`nothing went wrong (${problem})`, !problem)
    return given ?? undefined
  })
  await decide(scene, address, 'allow')
  for (const who of [PHONE, APP]) {
    await until(`the end for the ${who}`, async () => {
      const { isDone, problem } = await qr(who)
      expect(`nothing went wrong (${problem})`, !problem)
      return isDone
    })
  }
  expect('the phone is in', (await clients.ask(PHONE, 'whoami')).user === ANNA)
  expect('and trusted', await clients.ask(PHONE, 'is-verified'))
}

async function signOut(scene: SignInScene): Promise<void> {
  const { clients } = scene
  await clients.ask(PHONE, 'sign-out')
  const problem = await clients.ask(PHONE, 'whoami').then(
    () => 'nothing',
    (error: Error) => error.message,
  )
  expect(`the phone is out (${problem})`, problem !== 'nothing')
  expect('the computer is still in', (await clients.ask(APP, 'whoami')).user === ANNA)
}

export const signInRows: readonly Row<SignInScene>[] = [
  { name: 'a client registers, sends Anna to her browser, and is in once she allows it', run: signIn },
  { name: 'a client hears that she said no', run: sayNo },
  { name: 'the client renews its tokens', run: refresh },
  { name: 'the client renews its token by itself once that has expired', run: expire },
  { name: 'a phone reads the code that the client shows, and is in, and trusted', run: scan },
  { name: 'the phone signs out, and only the phone', run: signOut },
]

import { type Account, type Api, type Json, login, openApi, register, sendText, syncPath } from '../test/support/api.ts'
import { type ChildServer, startChildServer } from '../test/support/child-server.ts'
import { type SmtpSink, startSmtp } from '../test/support/smtp.ts'
import { addAddress, findByAddress } from './demo-email.ts'

/**
 * A conversation on a fresh server, told step by step. Every line marked "saw" comes from what the other side's own client
 * received, not from what was sent; when something is not seen in time, the story stops and the exit code is 1.
 */

const SEEN_WITHIN_MS = 10_000
const useColour = process.stdout.isTTY && process.env.NO_COLOR === undefined
const paint = (code: number) => (text: string) => (useColour ? `\u001b[${code}m${text}\u001b[0m` : text)
const bold = paint(1)
const dim = paint(2)
const green = paint(32)
const red = paint(31)

let chapterNumber = 0
function chapter(title: string): void {
  chapterNumber += 1
  console.log(`\n${bold(`${chapterNumber}. ${title}`)}`)
}
const tell = (text: string) => console.log(`   ${text}`)
const saw = (who: string, text: string) => console.log(`   ${green('✓')} ${who} saw ${text}`)
const quote = (text: string) => `“${text}”`

/** A person with a client: knows only what its own sync loop brought. */
class Person {
  readonly name: string
  readonly account: Account
  readonly #api: Api
  #since: string | undefined

  constructor(name: string, account: Account, api: Api) {
    this.name = name
    this.account = account
    this.#api = api
  }

  /** Keeps syncing until `pick` finds what it looks for. */
  async waitFor<T>(what: string, pick: (sync: Json) => T | undefined): Promise<T> {
    const deadline = performance.now() + SEEN_WITHIN_MS
    while (performance.now() < deadline) {
      const query = this.#since === undefined ? {} : { since: this.#since, timeout: 2_000 }
      const sync = await this.#api.call('GET', syncPath(query), { token: this.account.token })
      this.#since = sync.next_batch
      const found = pick(sync)
      if (found !== undefined) return found
    }
    throw new Error(`${this.name} did not see ${what} within ${SEEN_WITHIN_MS / 1_000} seconds`)
  }

  waitForEvent(what: string, roomId: string, wanted: (event: Json) => boolean): Promise<Json> {
    return this.waitFor(what, (sync) => sync.rooms?.join?.[roomId]?.timeline.events.find(wanted))
  }

  call(method: string, path: string, body?: unknown): Promise<Json> {
    return this.#api.call(method, path, { token: this.account.token, body })
  }

  say(roomId: string, text: string): Promise<string> {
    return sendText(this.#api, this.account.token, roomId, `demo-${text}`, text)
  }
}

const roomPath = (roomId: string) => `/rooms/${encodeURIComponent(roomId)}`
const hasBody = (text: string) => (event: Json) => event.type === 'm.room.message' && event.content.body === text

async function meet(api: Api): Promise<[Person, Person]> {
  chapter('Two people make accounts')
  const [ada, ben] = [
    new Person('Ada', await register(api, 'ada'), api),
    new Person('Ben', await register(api, 'ben'), api),
  ]
  for (const person of [ada, ben]) {
    await person.waitFor('the first answer of the server', (sync) => sync.next_batch)
    tell(`${person.name} is ${bold(person.account.userId)}, signed in and listening for news`)
  }
  return [ada, ben]
}

async function gather(ada: Person, ben: Person): Promise<string> {
  chapter('Ada opens a room and invites Ben')
  const created = await ada.call('POST', '/createRoom', { preset: 'private_chat', name: 'By the fire' })
  const roomId: string = created.room_id
  tell(`the room is called ${quote('By the fire')}; its id is ${dim(roomId)}`)
  await ada.call('POST', `${roomPath(roomId)}/invite`, { user_id: ben.account.userId })
  const invite = await ben.waitFor('the invitation', (sync) => sync.rooms?.invite?.[roomId])
  const name = invite.invite_state.events.find((event: Json) => event.type === 'm.room.name')
  const inviter = invite.invite_state.events.find((event: Json) => event.state_key === ben.account.userId)
  if (name?.content.name !== 'By the fire') throw new Error('the invitation that Ben saw does not name the room')
  saw('Ben', `an invitation to ${quote(name.content.name)} from ${inviter?.sender}`)
  await ben.call('POST', `${roomPath(roomId)}/join`, {})
  const joined = await ada.waitForEvent('Ben join', roomId, (event) => {
    return event.state_key === ben.account.userId && event.content.membership === 'join'
  })
  saw('Ada', `${joined.state_key} come in`)
  return roomId
}

async function talk(ada: Person, ben: Person, roomId: string): Promise<string> {
  chapter('They talk')
  const exchange = async (from: Person, to: Person, text: string) => {
    const eventId = await from.say(roomId, text)
    const heard = await to.waitForEvent(quote(text), roomId, hasBody(text))
    if (heard.event_id !== eventId) throw new Error(`${to.name} saw another event than ${from.name} sent`)
    saw(to.name, `${from.name}'s message ${quote(heard.content.body)}`)
    return eventId
  }
  await exchange(ada, ben, 'Is there still wood?')
  await exchange(ben, ada, 'Enough for the whole winter.')
  return exchange(ben, ada, 'The key is under the mat.')
}

async function takeBack(ada: Person, ben: Person, roomId: string, eventId: string): Promise<void> {
  chapter('Ben takes his last message back')
  await ben.call('PUT', `${roomPath(roomId)}/redact/${encodeURIComponent(eventId)}/demo-redact`, { reason: 'not here' })
  const redaction = await ada.waitForEvent('the redaction', roomId, (event) => event.type === 'm.room.redaction')
  saw('Ada', `${redaction.sender} take a message back, reason ${quote(redaction.content.reason)}`)
  const event = await ada.call('GET', `${roomPath(roomId)}/event/${encodeURIComponent(eventId)}`)
  if (Object.keys(event.content).length > 0) throw new Error('the words are still readable')
  saw('Ada', 'that its words are gone from the server too')
}

async function remember(api: Api, roomId: string, when: string): Promise<void> {
  const ada = new Person('Ada', await login(api, 'ada'), api)
  const page = await ada.call('GET', `${roomPath(roomId)}/messages?dir=b&limit=50`)
  const messages: Json[] = page.chunk.filter((event: Json) => event.type === 'm.room.message').toReversed()
  const lines = messages.map(({ sender, content }) => `${sender}: ${content.body ?? dim('(taken back)')}`)
  const bodies = messages.map(({ content }) => content.body)
  if (String(bodies) !== String(['Is there still wood?', 'Enough for the whole winter.', undefined])) {
    throw new Error(`the history ${when} is not what was said: ${JSON.stringify(bodies)}`)
  }
  saw('Ada', `on a device that was not there before, the whole conversation:`)
  for (const line of lines) tell(`  ${line}`)
}

async function tellStory(server: ChildServer, smtp: SmtpSink): Promise<void> {
  const api = openApi(server.baseUrl)
  try {
    const [ada, ben] = await meet(api)
    const roomId = await gather(ada, ben)
    const eventId = await talk(ada, ben, roomId)
    await takeBack(ada, ben, roomId, eventId)
    chapter('Ada gives an email address, and Ben finds her by it')
    const address = 'ada@example.org'
    const mail = await addAddress(api, ada.account, address, smtp)
    saw('Ada', `in her mailbox ${quote(mail.subject)}, and opened its link`)
    tell(`her account has the address ${bold(address)}; with the identity service of this server she publishes it`)
    saw('Ben', `by a hashed lookup of ${address}, that it is ${await findByAddress(api, ben.account, address)}`)
    chapter('Ada signs in on a second device')
    await remember(api, roomId, 'on the second device')
    chapter('The server is killed without warning and started again')
    await server.kill('SIGKILL')
    await server.start()
    tell(`ready again after ${Math.round(server.startedInMs())} ms`)
    await remember(api, roomId, 'after the crash')
  } finally {
    await api.close()
  }
}

async function main(): Promise<void> {
  console.log(bold('Hearth: a conversation, step by step'))
  console.log(dim('Starting a fresh server with its own Postgres in a temporary directory ...'))
  const smtp = await startSmtp({ hideSTARTTLS: true })
  try {
    await withServer(smtp)
  } finally {
    await smtp.close()
  }
}

async function withServer(smtp: SmtpSink): Promise<void> {
  const server = await startChildServer({
    env: {
      HEARTH__IDENTITY__MAIL__SMTP__HOST: '127.0.0.1',
      HEARTH__IDENTITY__MAIL__SMTP__PORT: String(smtp.port),
      HEARTH__IDENTITY__MAIL__SMTP__SECURITY: 'none',
    },
  })
  console.log(`Ready after ${Math.round(server.startedInMs())} ms at ${server.baseUrl}, data in ${server.dataDir}`)
  try {
    await tellStory(server, smtp)
    console.log(`\n${green('Everything that was said was seen by the other side.')}`)
  } catch (error) {
    const complaints = server
      .output()
      .split('\n')
      .filter((line) => /"level":"(warn|error|fatal)"/.test(line))
    for (const line of complaints.slice(-10)) console.error(dim(line))
    throw error
  } finally {
    await server.dispose()
    console.log(dim('The server is stopped and its directory removed.'))
  }
}

main().catch((error: Error) => {
  console.error(`\n${red('✗')} ${error.message}`)
  process.exitCode = 1
})

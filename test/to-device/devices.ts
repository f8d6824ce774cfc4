import { type Account, type Api, type Json, login, openApi, register } from '../support/api.ts'

/** A device of a user, with a client that keeps its sync token. */
export interface Device extends Account {
  readonly api: Api
  /** Sends to devices; gives the status and body of the answer. */
  send(messages: object, options?: SendOptions): Promise<{ status: number; body: Json }>
  /** A sync from where the last one ended, or from `since`. Keeps the token that it got. */
  sync(options?: SyncOptions): Promise<Json>
  /** Syncs until nothing waits any more, and gives the contents of all messages in their order. */
  readAll(): Promise<Json[]>
  since(): string | undefined
}

export interface SendOptions {
  readonly type?: string
  readonly txnId?: string
  readonly prefix?: string
}

export interface SyncOptions {
  readonly since?: string | undefined
  readonly timeout?: number
  readonly signal?: AbortSignal
}

let sent = 0

export function deviceOf(api: Api, account: Account): Device {
  const { token } = account
  let last: string | undefined
  async function sync({ since = last, timeout = 0, signal }: SyncOptions = {}): Promise<Json> {
    const query = since === undefined ? '' : `&since=${since}`
    const body = await api.call('GET', `/sync?timeout=${timeout}${query}`, { token, ...(signal && { signal }) })
    last = body.next_batch
    return body
  }
  return {
    ...account,
    api,
    sync,
    since: () => last,
    send(messages, { type = 'm.test', txnId = `txn-${++sent}`, prefix = '' } = {}) {
      return api.request('PUT', `${prefix}/sendToDevice/${encodeURIComponent(type)}/${txnId}`, {
        token,
        body: { messages },
      })
    },
    async readAll() {
      const contents: Json[] = []
      for (;;) {
        const events = messagesIn(await sync())
        if (events.length === 0) return contents
        contents.push(...events.map(({ content }) => content))
      }
    },
  }
}

export const messagesIn = (answer: Json): Json[] => answer.to_device.events

export const numbersIn = (answer: Json): number[] => messagesIn(answer).map(({ content }) => content.number)

/** A user with so many devices. */
export async function userWithDevices(api: Api, name: string, count = 1): Promise<Device[]> {
  const devices = [deviceOf(api, await register(api, name))]
  while (devices.length < count) devices.push(deviceOf(api, await login(api, name)))
  return devices
}

export { openApi }

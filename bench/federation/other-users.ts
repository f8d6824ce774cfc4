import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, sendText, syncPath } from '../../test/support/api.ts'
import { newPrefix } from '../community.ts'

/** People in a room of their own, who go on with what they do. */
export interface OtherUsers {
  /** How long each sync took since this was asked last. */
  syncsMs(): number[]
  end(): Promise<void>
}

const MESSAGE_EVERY_MS = 100
/** Clients of today wait for what is new, and are answered as often as something is said. */
const PAUSE_MS = MESSAGE_EVERY_MS

export function watchOtherUsers(api: Api, people: readonly Account[], roomId: string): OtherUsers {
  let taken: number[] = []
  let isOver = false

  async function sync({ token }: Account): Promise<void> {
    let since: string | undefined
    while (!isOver) {
      const begun = performance.now()
      const answer = await api.call('GET', syncPath(since === undefined ? {} : { since }), { token })
      if (since !== undefined) taken.push(performance.now() - begun)
      since = String(answer.next_batch)
      await pause(PAUSE_MS)
    }
  }

  async function talk({ token }: Account): Promise<void> {
    const prefix = newPrefix()
    for (let n = 0; !isOver; n++) {
      await sendText(api, token, roomId, `${prefix}-${n}`, `message ${n}`)
      await pause(MESSAGE_EVERY_MS)
    }
  }

  const all = Promise.all([...people.map(sync), talk(people[0]!)])
  all.catch(() => undefined)
  return {
    syncsMs() {
      const since = taken
      taken = []
      return since
    },
    async end() {
      isOver = true
      await all
    },
  }
}

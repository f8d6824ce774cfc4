import { setTimeout as pause } from 'node:timers/promises'
import type { NamedOutcome } from './report.ts'
import { buildRustClients } from './rust-clients.ts'
import { playSignIn } from './rust-sign-in.ts'
import { playTalk } from './rust-talk.ts'

export interface RustRun {
  readonly version: string
  readonly outcomes: readonly NamedOutcome[]
}

export interface RustOptions {
  /** How many compilers run at once. */
  readonly jobs: string
  /** Where the clients' requests are written, for the tests that send them again, by the name of the story. */
  readonly record: { readonly [story in StoryName]?: string | undefined }
  /** Only this story; all without it. */
  readonly only: string
  readonly minutes: number
}

export interface Row<Scene> {
  readonly name: string
  /** @throws Error when it is not as it should be */
  run(scene: Scene): Promise<void>
}

/** What people do with their clients. */
export interface StoryOptions {
  readonly program: string
  /** Where the clients' requests are written. */
  readonly record: string | undefined
  /** Does the rows in their order: each goes on where the one before ended. */
  play<Scene>(scene: Scene, rows: readonly Row<Scene>[]): Promise<void>
}

const STORIES = { talk: playTalk, 'sign-in': playSignIn }
type StoryName = keyof typeof STORIES

/** Has clients on matrix-rust-sdk do what people do. @throws Error when it cannot begin */
export async function runRustSdk({ jobs, record, only, minutes }: RustOptions): Promise<RustRun> {
  const { program, version } = buildRustClients(jobs)
  console.log(`matrix-rust-sdk ${version}: starting ...`)
  const outcomes: NamedOutcome[] = []
  const end = Date.now() + minutes * 60_000
  const play: StoryOptions['play'] = async (scene, rows) => {
    for (const { name, run } of rows) {
      const timer = new AbortController()
      const late = pause(Math.max(0, end - Date.now()), undefined, { signal: timer.signal }).then(() => {
        throw new Error('there is no time left')
      })
      late.catch(() => {})
      const begun = performance.now()
      const problem = await Promise.race([run(scene), late]).then(
        () => undefined,
        (error: Error) => error.message,
      )
      timer.abort()
      outcomes.push({ name, problem })
      console.log(`${problem ? '✗' : '✓'} ${name} (${((performance.now() - begun) / 1_000).toFixed(1)} s)`)
      if (problem) console.log(`    ${problem}`)
    }
  }
  for (const [name, playStory] of Object.entries(STORIES)) {
    if (only === '' || only === name) await playStory({ program, record: record[name as StoryName], play })
  }
  return { version, outcomes }
}

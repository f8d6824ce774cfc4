import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { openApi, PASSWORD, register } from '../../test/support/api.ts'
import { openBrowser } from '../../test/support/browser.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { interruption } from '../interruption.ts'
import { bundleClient } from './bundle.ts'
import { Album, openFriend } from './people.ts'
import { type Outcome, refusals, writeReport } from './report.ts'
import { serveSite, startRecorder } from './servers.ts'
import { MANAGING } from './steps-managing.ts'
import { TALKING } from './steps-talking.ts'
import type { Cast, Step } from './story.ts'

const USAGE = `npm run story -- [options]

Has a person use the unmodified user interface of Element in Chromium, with two friends at matrix-js-sdk in pages beside it, against a
Hearth on loopback. The client is installed from the package registry into a folder outside of this one, and kept there.

  --folder FOLDER     where the client is installed (hearth-web-client in the folder for temporary files)
  --pictures FOLDER   where a picture of each step goes (pictures in that folder)
  --until N           end after so many steps
  --write             write the result into docs/web-client.md`

const OPTIONS = {
  folder: { type: 'string', default: join(tmpdir(), 'hearth-web-client') },
  pictures: { type: 'string' },
  until: { type: 'string', default: '999' },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

const STEP_TIMEOUT_MS = 60_000

async function runStep(step: Step, cast: Cast): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it took longer than a minute')), STEP_TIMEOUT_MS)
  })
  try {
    await Promise.race([step.run(cast), late])
    return undefined
  } catch (error) {
    cast.failed = true
    return String((error as Error).message)
      .split('\n')
      .slice(0, 6)
      .join(' / ')
  } finally {
    clearTimeout(timer)
    await cast.album.take(cast.page, step.name).catch(() => undefined)
    // What a failed step leaves open does not spoil the next.
    if (cast.failed) await cast.page.keyboard.press('Escape').catch(() => undefined)
    cast.failed = false
  }
}

/** What the page itself complains about. */
function listen(page: Page, complaints: string[]): void {
  page.on('pageerror', (error) => complaints.push(error.message))
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS })
  if (values.help) return console.log(USAGE)
  await mkdir(values.folder, { recursive: true })
  console.log('installing and bundling the client ...')
  const folder = await bundleClient(values.folder)
  const server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' }, makesCluster: true })
  const recorder = await startRecorder(server.baseUrl)
  const homeserver = { base_url: recorder.address, server_name: server.serverName }
  const config = {
    default_server_config: { 'm.homeserver': homeserver },
    ...{ brand: 'Element', disable_guests: true, show_labs_settings: false },
    embedded_pages: { login_for_welcome: true },
    // Only then it has a command that upgrades a room.
    setting_defaults: { developerMode: true },
  }
  const site = await serveSite(folder, { '/config.json': JSON.stringify(config) })
  const browser = await openBrowser()
  const ended = interruption()
  const complaints: string[] = []
  const outcomes: Outcome[] = []
  try {
    const api = openApi(server.baseUrl)
    const names = { alice: 'alice', bob: 'bob', carol: 'carol' }
    const { userId } = await register(api, names.alice)
    for (const name of [names.bob, names.carol]) await register(api, name)
    const open = async (name: string) =>
      openFriend(await browser.newContext(), site.address, recorder.address, name, PASSWORD)
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
    const page = await context.newPage()
    listen(page, complaints)
    const cast: Cast = {
      ...{ page, site: site.address, homeserver: recorder.address, api, roomId: '', notes: new Map(), failed: false },
      album: new Album(values.pictures ?? join(values.folder, 'pictures')),
      bob: await open(names.bob),
      carol: await open(names.carol),
      alice: { userId, name: names.alice, password: PASSWORD },
    }
    for (const step of [...TALKING, ...MANAGING].slice(0, Number(values.until))) {
      const begun = performance.now()
      const problem = await Promise.race([runStep(step, cast), ended])
      outcomes.push({ name: step.name, problem, pageErrors: complaints.splice(0) })
      const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
      console.log(`${problem ? '✗' : '✓'} ${outcomes.length} ${step.name} (${seconds} s)`)
      if (problem) console.log(`    ${problem}`)
      // Without a session there is no story.
      if (problem && outcomes.length <= 2) break
      for (const complaint of outcomes.at(-1)!.pageErrors) console.log(`    page: ${complaint.slice(0, 200)}`)
    }
    await api.close()
  } finally {
    await browser.close()
    await site.close()
    await recorder.close()
    await server.dispose()
  }
  const refused = refusals(recorder.asked)
  for (const { line, times } of refused) console.log(`refused: ${line} (${times})`)
  if (values.write) await writeReport(outcomes, recorder.asked)
  process.exitCode = outcomes.some(({ problem }) => problem) || refused.some(({ isExpected }) => !isExpected) ? 1 : 0
  process.exit()
}

await main()

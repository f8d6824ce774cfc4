import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { CLIENT } from './bundle.ts'
import type { Asked } from './servers.ts'

export interface Outcome {
  readonly name: string
  readonly problem: string | undefined
  readonly pageErrors: readonly string[]
}

/** What a client is told although nothing is wrong: there is nothing of that kind, as the specification has it. */
const EXPECTED: readonly [line: RegExp, why: string][] = [
  [/^GET .*\/room_keys\/version: 404 M_NOT_FOUND/, 'there is no key backup yet'],
  [/^GET .*\/account_data\/[^/]+: 404 M_NOT_FOUND/, 'this account data was never set'],
  [/^GET .*\/profile\/[^/]+\/[^/]+: 404 M_NOT_FOUND/, 'this field of a profile was never set'],
  [/^GET .*\/auth_(?:metadata|issuer): 404 M_UNRECOGNIZED/, 'there is no OAuth'],
  [/^GET .*\/dehydrated_device.*: 404/, 'there are no dehydrated devices'],
  [/^GET .*\/rtc\/transports: 404/, 'there is no server for calls'],
]

export interface Refused {
  readonly line: string
  readonly times: number
  readonly isExpected: boolean
  readonly why: string | undefined
}

/** Ids differ from run to run. */
const withoutIds = (path: string): string =>
  decodeURIComponent(path)
    .replace(/\?.*$/, '')
    .replace(/[!$][\w-]{18,}(?::localhost)?/g, (id) => (id.startsWith('!') ? '{roomId}' : '{eventId}'))
    .replace(/@\w+:localhost/g, '{userId}')

/** Requests that ended with 404, 405 or 5xx, each kind once. */
export function refusals(asked: readonly Asked[]): Refused[] {
  const counts = new Map<string, number>()
  for (const { method, path, status, errcode } of asked) {
    if (status !== 404 && status !== 405 && status < 500) continue
    const line = `${method} ${withoutIds(path)}: ${status}${errcode ? ` ${errcode}` : ''}`
    counts.set(line, (counts.get(line) ?? 0) + 1)
  }
  return [...counts].sort().map(([line, times]) => {
    const why = EXPECTED.find(([pattern]) => pattern.test(line))?.[1]
    return { line, times, why, isExpected: why !== undefined }
  })
}

export async function writeReport(outcomes: readonly Outcome[], asked: readonly Asked[]): Promise<void> {
  const date = new Date().toISOString().slice(0, 10)
  const steps = outcomes.map(({ name, problem }, index) => `| ${index + 1} | ${name} | ${problem ? '**no**' : 'yes'} |`)
  const refused = refusals(asked)
  const lines = refused.map(({ line, times, why }) => `| \`${line}\` | ${times} | ${why ?? '**unexpected**'} |`)
  const text = `# With a web client

\`npm run story -- --write\` installs the user interface of Element (${CLIENT.name} ${CLIENT.version}) outside of this folder, opens it in Chromium
beside two pages with matrix-js-sdk, has people use them, and writes this page. All requests pass a recorder on their way to the server.

Run on ${date}: ${outcomes.filter(({ problem }) => !problem).length} of ${outcomes.length} steps, ${asked.length} requests.

| | | |
| --- | --- | --- |
${steps.join('\n')}

## What was answered with 404, 405 or 5xx

| | times | why |
| --- | --- | --- |
${lines.join('\n')}
`
  await writeFile(join(PROJECT_ROOT, 'docs/web-client.md'), text)
}

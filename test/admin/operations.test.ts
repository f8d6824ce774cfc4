import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { type Office, openOffice } from './office.ts'
import operations from './operations.json' with { type: 'json' }

const OPERATIONS = Object.entries(operations)
const PARAMETERS: Readonly<Record<string, string>> = {
  userId: '@none:localhost',
  roomId: '!none:localhost',
  roomIdOrAlias: '!none:localhost',
  eventId: '$none',
  serverName: 'none.example',
}

let office: Office

beforeAll(async () => {
  office = await openOffice()
})

afterAll(() => office.close())

describe('the operations of existing tools', () => {
  test('are all declared', () => {
    const shape = (line: string) => line.replace(/\{[^}]+\}/g, '{}')
    const declared = new Set(
      adminEndpoints.flatMap(({ method, path, options }) =>
        [path, ...(options.also ?? [])].map((each) => shape(`${method} ${each}`)),
      ),
    )
    const missing = OPERATIONS.filter(([line]) => !declared.has(shape(line.replace(' ', ' /_synapse/admin/'))))
    expect(missing).toEqual([])
  })

  test.each(OPERATIONS)('%s is served, and its test is named', async (line, file) => {
    const [method, path] = line.split(' ') as [string, string]
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(PARAMETERS[name] ?? 'none'))
    const { status, body } = await office.ask(method, `/${filled}`, method === 'GET' ? undefined : {})
    expect([status, body.errcode]).not.toEqual([404, 'M_UNRECOGNIZED'])
    expect([405, 500]).not.toContain(status)
    expect(existsSync(join(PROJECT_ROOT, file))).toBe(true)
    const page = readFileSync(join(PROJECT_ROOT, 'docs/administration.md'), 'utf8')
    expect(page).toContain(`| \`${line}\` | \`${file}\` |`)
  })
})

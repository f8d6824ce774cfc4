import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { exampleYaml, jsonSchema, printConfig } from '../../src/config/render.ts'

const committed = (name: string) => readFileSync(new URL(`../../config/${name}`, import.meta.url), 'utf8')

test('config/example.yaml and config/schema.json are what `npm run docs` writes', () => {
  expect(committed('example.yaml')).toBe(exampleYaml())
  expect(committed('schema.json')).toBe(jsonSchema())
})

test('the example changes nothing as it stands, and is right when every line of it is used', () => {
  const load = (text: string) => loadConfig({ file: { path: '/x/hearth.yaml', text }, directory: '/x' })
  const used = exampleYaml().replace(/^( *)#(?! )/gm, '$1')
  expect(load(exampleYaml()).config).toEqual(load('').config)
  expect(load(used).origins.get('database.url')).toMatch(/^\/x\/hearth\.yaml:\d+$/)
})

test('the JSON schema accepts what the server accepts', () => {
  const validate = new Ajv2020({ strict: false }).compile(JSON.parse(jsonSchema()))
  const used = parse(exampleYaml().replace(/^( *)#(?! )/gm, '$1'))
  expect(validate(used), JSON.stringify(validate.errors)).toBe(true)
  expect(validate({ database: { url_file: '/run/secrets/url' } })).toBe(true)
  expect(validate({ listen: { prot: 1 } })).toBe(false)
})

test('printing hides secrets and says where values come from', () => {
  const env = { HEARTH__DATABASE__URL: 'postgres://hearth:hunter2@db/hearth', HEARTH__LISTEN__PORT: '1' }
  const text = printConfig(loadConfig({ env, directory: '/srv' }))
  expect(text).toMatch(/^database\.url: \[hidden\] +# HEARTH__DATABASE__URL$/m)
  expect(text).toMatch(/^listen\.port: 1 +# HEARTH__LISTEN__PORT$/m)
  expect(text).not.toContain('hunter2')
})

import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { preferredLanguages } from '../../src/core/languages.ts'
import { readMessageTemplate } from '../../src/core/message-template.ts'
import { type Filter, readTemplate, TemplateError, type TemplateValues } from '../../src/core/template.ts'

const NAMES = ['name', 'room']
const render = (text: string, values: Record<string, string>, filter: Filter = 'text') =>
  readTemplate(text, NAMES, filter)(values)

describe('a template', () => {
  it.each<[string, Record<string, string>, string]>([
    ['plain', {}, 'plain'],
    ['', {}, ''],
    ['Hello {{name}}!', { name: 'Ada' }, 'Hello Ada!'],
    ['Hello {{ name }}!', {}, 'Hello !'],
    ['{{name}}{{name}}', { name: '{{room}}', room: 'x' }, '{{room}}{{room}}'],
    ['{{#room}}in {{room}}{{/room}}.', { room: 'r' }, 'in r.'],
    ['{{#room}}in {{room}}{{/room}}.', {}, '.'],
    ['{{^room}}nowhere{{/room}}', {}, 'nowhere'],
    ['{{#room}}{{^name}}a{{/name}}{{#name}}b{{/name}}{{/room}}', { room: 'r', name: 'n' }, 'b'],
    ['{{name}}', Object.create({ name: 'inherited' }), ''],
  ])('%j with %j', (text, values, expected) => expect(render(text, values)).toBe(expected))

  it.each<[string, TemplateValues, string]>([
    ['{{#room}}[{{name}}]{{/room}}', { room: [{ name: 'a' }, { name: '<b>' }] }, '[a][&#60;b&#62;]'],
    ['{{#room}}[{{name}}]{{/room}}{{^room}}none{{/room}}', { room: [] }, 'none'],
    ['{{^room}}none{{/room}}', { room: [{}] }, ''],
    ['{{#room}}{{name}} {{/room}}{{name}}', { name: 'out', room: [{ name: 'in' }, {}] }, 'in out out'],
    ['{{#room}}{{#name}}{{room}}{{/name}};{{/room}}', { room: [{ name: [{ room: 'x' }, { room: 'y' }] }, {}] }, 'xy;;'],
    ['{{room}}', { room: [{ name: 'a' }] }, ''],
  ])('repeats %j for each of a list', (text, values, expected) =>
    expect(readTemplate(text, NAMES, 'html')(values)).toBe(expected),
  )

  it('puts markup in as it is, and knows no filter but those of its place', () => {
    const rules = { markup: ['room'], filters: ['html', 'url'] } as const
    expect(readTemplate('{{name}}{{room}}', NAMES, 'html', 1, rules)({ name: '<i>', room: '<b>' })).toBe(
      '&#60;i&#62;<b>',
    )
    expect(() => readTemplate('a\n{{name | text}}', NAMES, 'html', 7, rules)).toThrow(
      expect.objectContaining({ line: 8, message: 'there is no filter "text" here; known are html, url' }),
    )
  })

  it.each<[Filter, string, string]>([
    ['text', `<b>&"'`, `<b>&"'`],
    ['html', `<b>&"'`, '&#60;b&#62;&#38;&#34;&#39;'],
    ['json', '"</script>\n\\', '\\"\\u003c/script>\\n\\\\'],
    ['header', 'a\r\nBcc: b\u0000\u2028\u202ec', 'a Bcc: b c'],
    ['name', 'Boss <boss@bank.example>, "x"', 'Boss boss@bank.example x'],
    ['url', 'a b&c=d/é', 'a%20b%26c%3Dd%2F%C3%A9'],
    ['url', '\ud800', '%EF%BF%BD'],
    ['localpart', 'ada@x@y', 'ada'],
    ['localpart', 'ada', 'ada'],
  ])('filters for %s', (filter, value, expected) => {
    expect(render('{{name}}', { name: value }, filter)).toBe(expected)
    expect(render(`{{name | ${filter}}}`, { name: value }, filter === 'text' ? 'html' : 'text')).toBe(expected)
  })

  it.each([
    ['one\n{{nobody}}', 2, /there is no "nobody"/],
    ['{{name | loud}}', 1, /no filter "loud"/],
    ['{{name | constructor}}', 1, /no filter/],
    ['{{name}', 1, /comes a name/],
    ['\n\n{{', 3, /comes a name/],
    ['{{#name}}', 1, /never closed/],
    ['{{/name}}', 1, /closes nothing/],
    ['{{#name}}\n{{#room}}\n{{/name}}{{/room}}', 3, /closes nothing/],
  ])('says what is wrong with %j', (text, line, message) => {
    const attempt = () => readTemplate(text, NAMES, 'text')
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(expect.objectContaining({ line }))
    expect(attempt).toThrow(TemplateError)
  })

  test('whatever a value holds, it stays in its place', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        expect(render('<a title="{{name}}">', { name }, 'html')).not.toMatch(/^<a title=".*["<>].*">$/s)
        expect(render('{{name}}', { name }, 'header')).not.toMatch(/[\r\n\0\u2028]/)
        expect(render('{{name}}', { name }, 'name')).not.toMatch(/[<>",;\r\n]/)
        const wellFormed = Buffer.from(name).toString()
        expect(JSON.parse(render('"{{name}}"', { name: wellFormed }, 'json'))).toBe(wellFormed)
      }),
    )
  })
})

describe("a mail's template", () => {
  const MAIL = [
    'From: {{name}} <no-reply@example.org>',
    'Subject: Come to {{room}}',
    'X-Room: {{room}}',
    '',
    '--- text',
    'Hello {{name}}',
    '',
    '--- html',
    '<p>Hello {{name}}</p>',
  ].join('\n')

  test('owns headers, text and HTML', () => {
    expect(readMessageTemplate(MAIL, NAMES)({ name: 'A & B', room: 'R' })).toEqual({
      from: { name: 'A & B', address: 'no-reply@example.org' },
      subject: 'Come to R',
      headers: { 'X-Room': 'R' },
      text: 'Hello A & B\n',
      html: '<p>Hello A &#38; B</p>\n',
    })
    expect(readMessageTemplate(MAIL.replaceAll('\n', '\r\n'), NAMES)({}).subject).toBe('Come to')
  })

  test('lets no value become a header or an address', () => {
    const evil = 'x\r\nBcc: all@example.org <evil@example.org>'
    const { from, subject, headers } = readMessageTemplate(MAIL, NAMES)({ name: evil, room: evil })
    expect(from).toEqual({ name: 'x Bcc: all@example.org evil@example.org', address: 'no-reply@example.org' })
    expect(subject).not.toMatch(/[\r\n]/)
    expect(headers['X-Room']).not.toMatch(/[\r\n]/)
  })

  it.each([
    ['Subject: x\n\n--- text\nx', 1, /needs the headers/],
    ['From: a@b\nSubject: x\n\n--- html\nx', 4, /needs a part/],
    ['From: a@b\nSubject: x\nTo: all@example.org\n\n--- text\nx', 3, /To is not for a template/],
    ['From: a@b\nSubject: x\nbcc: all@example.org\n\n--- text\nx', 3, /not for a template/],
    ['From: a@b\nSubject: x\nContent-Type: text/plain\n\n--- text\nx', 3, /not for a template/],
    ['From: a@b\nSubject: x\nSubject: y\n\n--- text\nx', 3, /twice/],
    ['From: a@b\n folded\n\n--- text\nx', 2, /expected a header/],
    ['From: a@b\nSubject: x\n\nhello\n', 4, /expected "--- text"/],
    ['From: a@b\nSubject: x\n\n--- text\n\nfine\n{{nobody}}', 7, /there is no "nobody"/],
    ['From: a@b\nSubject: x\n\n--- text\nfine\n--- html\n{{/name}}', 7, /closes nothing/],
  ])('says what is wrong with %j', (source, line, message) => {
    expect(() => readMessageTemplate(source, NAMES)).toThrow(message)
    expect(() => readMessageTemplate(source, NAMES)).toThrow(expect.objectContaining({ line }))
  })
})

describe('wanted languages', () => {
  it.each<[string | undefined, string[]]>([
    [undefined, []],
    ['', []],
    ['de', ['de']],
    ['de-AT, en;q=0.5', ['de-at', 'de', 'en']],
    ['en;q=0.1, fr;q=0.9, DE', ['de', 'fr', 'en']],
    ['*, de;q=0', []],
    ['../../etc, de;q=nonsense, zh-Hant-TW', ['zh-hant-tw', 'zh-hant', 'zh']],
    [Array.from({ length: 200 }, () => 'aa').join(), ['aa']],
  ])('%j are %j', (header, tags) => expect(preferredLanguages(header)).toEqual(tags))
})

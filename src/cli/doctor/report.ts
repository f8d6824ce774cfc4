import type { Finding, Section, Verdict } from './finding.ts'

const MARKS: Readonly<Record<Verdict, { readonly mark: string; readonly colour: number }>> = {
  ok: { mark: '✓', colour: 32 },
  warning: { mark: '!', colour: 33 },
  problem: { mark: '✗', colour: 31 },
  skipped: { mark: '–', colour: 90 },
}
const DIM = 90
const BOLD = 1
const WIDTH = 100
const MIN_SUBJECT = 18
const MAX_SUBJECT = 30

export function countOf(sections: readonly Section[], verdict: Verdict): number {
  return sections.flatMap(({ findings }) => findings).filter((finding) => finding.verdict === verdict).length
}

/** For people: a line per finding, with the advice below. */
export function printReport(title: string, sections: readonly Section[], isColoured: boolean): string {
  const paint = (code: number, text: string): string => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  const subjects = sections.flatMap(({ findings }) => findings.map(({ subject }) => subject.length))
  const width = Math.min(Math.max(MIN_SUBJECT, ...subjects), MAX_SUBJECT) + 2

  function lines({ verdict, subject, text, advice }: Finding): string[] {
    const { mark, colour } = MARKS[verdict]
    const indent = ' '.repeat(6 + width)
    const [first = '', ...rest] = wrap(text, WIDTH - indent.length)
    const name = subject.length < width ? subject.padEnd(width) : `${subject}\n${indent}`
    const shown = verdict === 'skipped' ? paint(DIM, `${name}${first}`) : `${name}${first}`
    return [
      `    ${paint(colour, mark)} ${shown}`,
      ...rest.map((line) => indent + (verdict === 'skipped' ? paint(DIM, line) : line)),
      ...wrap(advice ?? '', WIDTH - indent.length - 2).map(
        (line, index) => indent + paint(colour, `${index === 0 ? '→' : ' '} ${line}`),
      ),
    ]
  }

  const body = sections.flatMap(({ title: name, findings }) => [
    '',
    `  ${paint(BOLD, name)}`,
    ...findings.flatMap(lines),
  ])
  return ['', `  ${paint(BOLD, title)}`, ...body, '', `  ${summary(sections, paint)}`, ''].join('\n')
}

function summary(sections: readonly Section[], paint: (code: number, text: string) => string): string {
  const count = (verdict: Verdict, one: string, many: string): string => {
    const number = countOf(sections, verdict)
    const text = `${number} ${number === 1 ? one : many}`
    return number === 0 ? text : paint(MARKS[verdict].colour, text)
  }
  return [
    count('ok', 'fine', 'fine'),
    count('warning', 'warning', 'warnings'),
    count('problem', 'problem', 'problems'),
  ].join(', ')
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** For programs. */
export function jsonReport(serverName: string, sections: readonly Section[]): string {
  const [fine, warnings, problems] = (['ok', 'warning', 'problem'] as const).map((verdict) =>
    countOf(sections, verdict),
  )
  return JSON.stringify(
    { server_name: serverName, ok: problems === 0, fine, warnings, problems, sections },
    undefined,
    2,
  )
}

import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks'
import { call, Refusal, reasonOf } from '../api.ts'
import { facts } from '../facts.ts'
import { leaveToSignIn } from '../leave.ts'
import { rich, t } from '../words.ts'

/** What a person is asked before something happens. */
export interface Question {
  readonly title: string
  readonly words?: ComponentChildren
  readonly fields?: readonly Field[]
  /** The label of the button that does it. */
  readonly verb: string
  /** It destroys something: the button says so by its colour. */
  readonly isGrave?: boolean
  /** What must be typed before a grave act, to show that the right thing is meant. */
  readonly confirm?: string
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly kind?: 'text' | 'password' | 'number' | 'checkbox' | 'datetime-local'
  readonly value?: string
  readonly hint?: string
  readonly isOptional?: boolean
  /** A password that they have, and not a new one. */
  readonly isKnown?: boolean
  /** Whose password it is, for the browser's own keeper of passwords. */
  readonly owner?: string
}

type Answers = Readonly<Record<string, string>>
/** Resolves to what was entered; undefined if the person thought better of it. */
type Ask = (question: Question) => Promise<Answers | undefined>

interface Acting {
  readonly ask: Ask
  /** Says in a corner what was done, or why not. */
  say(words: string, isProblem?: boolean): void
}

const ActingContext = createContext<Acting>({ ask: async () => undefined, say: () => {} })

/** Runs acts one at a time, and says how each ended. */
export function useActing(): Acting & {
  readonly isBusy: boolean
  run(done: string, work: () => Promise<unknown>): Promise<boolean>
} {
  const { ask, say } = useContext(ActingContext)
  const [isBusy, setBusy] = useState(false)
  const run = useCallback(
    async (done: string, work: () => Promise<unknown>) => {
      setBusy(true)
      try {
        if (!(await proven(ask, work))) return false
        say(done)
        return true
      } catch (error) {
        say(reasonOf(error), true)
        return false
      } finally {
        setBusy(false)
      }
    },
    [ask, say],
  )
  return { ask, say, isBusy, run }
}

const isProofNeeded = (error: unknown): boolean => error instanceof Refusal && error.isProofNeeded

/** Does a work, and has the person prove who they are where it needs that. Gives whether it was done: they may think better of it. */
async function proven(ask: Ask, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    if (!isProofNeeded(error)) throw error
  }
  if (!(await prove(ask))) return false
  await work()
  return true
}

async function prove(ask: Ask): Promise<boolean> {
  const title = t('Is it you?')
  if (!facts.has_password) {
    const words = <p>{t('You signed in a while ago, and this is a grave act. Sign in again, and then do it.')}</p>
    if ((await ask({ title, words, verb: t('Sign in again') })) !== undefined) leaveToSignIn()
    return false
  }
  let problem: string | undefined
  for (;;) {
    const answers = await ask({
      title,
      words: (
        <>
          <p>{t('You signed in a while ago, and this is a grave act. Enter your password again.')}</p>
          {problem !== undefined && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
        </>
      ),
      fields: [{ name: 'password', label: t('Your password'), kind: 'password', owner: facts.user_id, isKnown: true }],
      verb: t('Go on'),
    })
    if (answers === undefined) return false
    try {
      await call('POST', '/_hearth/admin/v1/session/proof', { password: answers.password ?? '' })
      return true
    } catch (error) {
      problem = reasonOf(error)
    }
  }
}

interface Asked {
  readonly question: Question
  readonly answer: (answers: Answers | undefined) => void
}

const SHOWN_MS = 6_000

export function ActingProvider({ children }: { readonly children: ComponentChildren }) {
  const [asked, setAsked] = useState<Asked>()
  const [said, setSaid] = useState<{ words: string; isProblem: boolean }>()
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  const ask = useCallback<Ask>((question) => new Promise((answer) => setAsked({ question, answer })), [])
  const say = useCallback((words: string, isProblem = false) => {
    clearTimeout(timer.current)
    setSaid({ words, isProblem })
    // A problem stays until it is closed: whoever looks away has to find it.
    if (!isProblem) timer.current = setTimeout(() => setSaid(undefined), SHOWN_MS)
  }, [])
  const acting = useRef<Acting>({ ask, say })

  return (
    <ActingContext.Provider value={acting.current}>
      {children}
      <div class="corner" role={said?.isProblem ? 'alert' : 'status'}>
        {said !== undefined && (
          <p class={said.isProblem ? 'said bad' : 'said'}>
            <span>{said.words}</span>
            <button type="button" class="quiet small" aria-label={t('Close')} onClick={() => setSaid(undefined)}>
              ×
            </button>
          </p>
        )}
      </div>
      {asked !== undefined && (
        <QuestionDialog
          key={asked.question.title}
          question={asked.question}
          answer={(answers) => {
            setAsked(undefined)
            asked.answer(answers)
          }}
        />
      )}
    </ActingContext.Provider>
  )
}

function QuestionDialog({ question, answer }: Asked) {
  const { title, words, fields = [], verb, isGrave, confirm } = question
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  useEffect(() => dialog.current?.showModal(), [])
  // A question belongs to the page on which it was asked.
  useEffect(() => {
    const left = () => answer(undefined)
    window.addEventListener('hashchange', left)
    return () => window.removeEventListener('hashchange', left)
  }, [answer])

  function submitted(event: SubmitEvent): void {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    answer(Object.fromEntries([...data].map(([name, value]) => [name, String(value)])))
  }

  return (
    <dialog
      ref={dialog}
      aria-labelledby="question"
      onCancel={(event) => {
        event.preventDefault()
        answer(undefined)
      }}
    >
      <form onSubmit={submitted}>
        <h2 id="question">{title}</h2>
        {words !== undefined && <div class="words">{words}</div>}
        {fields.map((field) => (
          <FieldInput key={field.name} field={field} />
        ))}
        {confirm !== undefined && (
          <label>
            {rich('Type {word} to go on', { word: <code>{confirm}</code> })}
            <input
              value={typed}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        <p class="actions">
          <button
            type="submit"
            class={isGrave ? 'grave' : undefined}
            disabled={confirm !== undefined && typed !== confirm}
          >
            {verb}
          </button>
          <button type="button" class="quiet" onClick={() => answer(undefined)}>
            {t('Cancel')}
          </button>
        </p>
      </form>
    </dialog>
  )
}

function FieldInput({ field }: { readonly field: Field }) {
  const { name, label, kind = 'text', value, hint, isOptional, owner, isKnown } = field
  const hintId = hint === undefined ? undefined : `hint-${name}`
  if (kind === 'checkbox') {
    return (
      <label class="choice">
        <input type="checkbox" name={name} value="yes" defaultChecked={value === 'yes'} />
        <span>{label}</span>
      </label>
    )
  }
  return (
    <div>
      {owner !== undefined && <input hidden readOnly autocomplete="username" value={owner} />}
      <label>
        {label}
        <input
          // The types of inputs are kept apart by the library's own types, which a variable does not satisfy.
          {...({ type: kind } as { type: 'text' })}
          name={name}
          defaultValue={value ?? ''}
          required={!isOptional}
          aria-describedby={hintId}
          autocomplete={kind === 'password' ? (isKnown ? 'current-password' : 'new-password') : 'off'}
        />
      </label>
      {hint !== undefined && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  )
}

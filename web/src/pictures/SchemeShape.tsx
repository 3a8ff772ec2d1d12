import { parseScheme, schemeSentence, schemeText } from "./scheme";
import "./pictures.css";

export interface SchemeShapeProps {
  /** A canonical code: rs(4,2) or rep(3). Anything else is shown as the text it is. */
  readonly scheme: string;
}

const square = 7;
const pitch = 9;
const squaresInARow = 16;

/** A scheme as its squares, data filled and parity hatched, and its number: never colour alone. */
export function SchemeShape({ scheme: code }: SchemeShapeProps) {
  const scheme = parseScheme(code);
  if (!scheme) {
    return <span className="picture-scheme">{code}</span>;
  }
  const squares = scheme.data + scheme.parity;
  const columns = Math.min(squares, squaresInARow);
  const rows = Math.ceil(squares / squaresInARow);
  const sentence = schemeSentence(code, scheme);
  return (
    <span className="picture-scheme" title={sentence}>
      <svg
        role="img"
        aria-label={sentence}
        width={columns * pitch - 1}
        height={rows * pitch - 1}
        viewBox={`0 0 ${columns * pitch - 1} ${rows * pitch - 1}`}
      >
        {Array.from({ length: squares }, (_, i) => (
          <Square
            key={i}
            x={(i % squaresInARow) * pitch}
            y={Math.floor(i / squaresInARow) * pitch}
            kind={i < scheme.data ? "data" : scheme.copies ? "copy" : "parity"}
          />
        ))}
      </svg>
      <span aria-hidden="true">{schemeText(scheme)}</span>
    </span>
  );
}

function Square({ x, y, kind }: { readonly x: number; readonly y: number; readonly kind: "data" | "copy" | "parity" }) {
  return (
    <g transform={`translate(${x} ${y})`}>
      <rect className={`picture-square-${kind}`} x={0.5} y={0.5} width={square} height={square} />
      {kind === "parity" && <path className="picture-hatch" d={`M0.5 ${square + 0.5}L${square + 0.5} 0.5`} />}
      {kind === "copy" && <path className="picture-hatch" d={`M0.5 ${square / 2 + 0.5}H${square + 0.5}`} />}
    </g>
  );
}

// Families about files and folders: make, move, rename, copy, join, delete, link, pack.
import { contains, type Family, hasLine, isFile, isFolder, isGone, together } from "./goal.ts";
import { tarOf } from "./tar-of.ts";

export const FILE_FAMILIES: readonly Family[] = [
  {
    name: "make-file",
    looks: false,
    build: world => {
      const folder = world.random.chance(0.6) ? `${world.name()}/${world.name()}` : world.name();
      const file = `${folder}/${world.name(".txt")}`;
      const text = `${world.word()} ${world.random.chance(0.5) ? world.number() : world.word()}`;
      return {
        instruction: world.say(
          `Create the directory ${folder} and put the text ${text} into ${file}.`,
          `Make a directory ${folder} with a file ${file.slice(folder.length + 1)} that says ${text}.`,
        ),
        solution: [`mkdir -p ${folder}`, `echo ${text} > ${file}`],
        flawed: [
          [`mkdir ${folder}`, `echo ${text} > ${file.slice(folder.length + 1)}`],
          [`echo ${text} > ${file}`],
          [`mkdir -p ${folder}`, `touch ${file}`],
        ],
        checks: [isFolder(folder), isFile(file), contains(file, [text])],
      };
    },
  },
  {
    name: "move",
    looks: false,
    writesOtherEndings: true,
    build: world => {
      const file = world.name(world.say(".txt", ".csv", ".log"));
      const folder = world.name();
      const lines = world.lines(2);
      world.write(file, lines);
      return {
        instruction: world.say(
          `Move ${file} into a new directory ${folder}.`,
          `Create the directory ${folder} and move ${file} there.`,
        ),
        solution: [`mkdir ${folder}`, `mv ${file} ${folder}`],
        flawed: [[`mv ${file} ${folder}`], [`mkdir ${folder}`, `cp ${file} ${folder}`], [`mkdir ${folder}`]],
        checks: [
          isFolder(folder),
          contains(`${folder}/${file}`, lines),
          together(`${file} was moved, not copied`, isGone(file), isFile(`${folder}/${file}`)),
        ],
      };
    },
  },
  {
    name: "rename",
    looks: false,
    writesOtherEndings: true,
    build: world => {
      const from = world.name(world.say(".txt", ".csv"));
      const to = world.name(".md");
      const lines = world.lines(2);
      world.write(from, lines);
      return {
        instruction: world.say(`Rename the file ${from} to ${to}.`, `The file ${from} must be called ${to}.`),
        solution: [`mv ${from} ${to}`],
        flawed: [[`cp ${from} ${to}`], [`touch ${to}`], [`mv ${to} ${from}`]],
        checks: [isFile(to), contains(to, lines), together(`${from} is gone`, isGone(from), isFile(to))],
      };
    },
  },
  {
    name: "copy-and-append",
    looks: false,
    build: world => {
      const from = world.name(".txt");
      const to = world.name(".txt");
      const lines = world.lines(2);
      const extra = world.word();
      world.write(from, lines);
      return {
        instruction: world.say(
          `Copy ${from} to ${to} and append the line ${extra} to ${to}.`,
          `Make ${to} a copy of ${from} with the extra last line ${extra}.`,
        ),
        solution: [`cp ${from} ${to}`, `echo ${extra} >> ${to}`],
        flawed: [
          [`cp ${from} ${to}`, `echo ${extra} > ${to}`],
          [`cp ${from} ${to}`],
          [`echo ${extra} >> ${from}`, `cp ${from} ${to}`],
        ],
        checks: [
          isFile(to),
          hasLine(to, lines[0]),
          contains(to, [...lines, extra]),
          together(`${from} stayed as it was`, contains(from, lines), hasLine(to, extra)),
        ],
      };
    },
  },
  {
    name: "join",
    looks: false,
    build: world => {
      const [first, second, to] = [world.name(".txt"), world.name(".txt"), world.name(".txt")];
      const [head, tail] = [world.lines(2), world.lines(1)];
      world.write(first, head);
      world.write(second, tail);
      return {
        instruction: world.say(
          `Join ${first} and ${second} into ${to}.`,
          `Write ${first} followed by ${second} to ${to}.`,
        ),
        solution: [`cat ${first} ${second} > ${to}`],
        flawed: [[`cat ${first} > ${to}`], [`cat ${second} ${first} > ${to}`], [`cat ${first} ${second}`]],
        checks: [isFile(to), hasLine(to, tail[0]), contains(to, [...head, ...tail])],
      };
    },
  },
  {
    name: "delete",
    looks: false,
    build: world => {
      const file = world.name(world.say(".txt", ".tmp", ".dat"));
      const kept = world.name(".txt");
      const lines = world.lines(1);
      world.write(file, world.lines(1));
      world.write(kept, lines);
      return {
        instruction: world.say(
          `Delete the file ${file} and keep ${kept}.`,
          `Remove ${file}, but not ${kept}.`,
        ),
        solution: [`rm ${file}`],
        flawed: [[`rm ${kept}`], ["ls"], [`rm ${file} ${kept}`]],
        checks: [
          isGone(file),
          together(`${kept} is still there`, isFile(kept), isGone(file)),
          together(`${kept} stayed as it was`, contains(kept, lines), isGone(file)),
        ],
      };
    },
  },
  {
    name: "permit-and-link",
    looks: false,
    build: world => {
      const script = world.name(".sh");
      const link = world.name();
      const text = world.word();
      world.write(script, ["#!/bin/sh", `echo ${text}`]);
      return {
        instruction: world.say(
          `Make ${script} executable and add a symbolic link ${link} to it.`,
          `The script ${script} must be executable, and the link ${link} must point to it.`,
        ),
        solution: [`chmod +x ${script}`, `ln -s ${script} ${link}`],
        flawed: [
          [`chmod +x ${script}`, `ln -s ${link} ${script}`],
          [`chmod +x ${script}`],
          [`ln -s ${script} ${link}`],
        ],
        checks: [
          { name: `${script} is executable`, condition: `[ -x ${script} ]` },
          { name: `${link} is a symbolic link`, condition: `[ -L ${link} ]` },
          { name: `${link} runs the script`, condition: `[ "$(./${link})" = ${text} ]` },
        ],
      };
    },
  },
  {
    name: "pack",
    looks: false,
    build: world => {
      const folder = world.name();
      const [first, second] = [world.name(".txt"), world.name(".txt")];
      const archive = world.name(".tar");
      const lines = world.lines(1);
      world.write(`${folder}/${first}`, lines);
      world.write(`${folder}/${second}`, world.lines(1));
      return {
        instruction: world.say(
          `Pack the directory ${folder} into the archive ${archive}.`,
          `Create the tar archive ${archive} from ${folder}.`,
        ),
        solution: [`tar cf ${archive} ${folder}`],
        flawed: [
          [`tar xf ${archive} ${folder}`],
          [`tar cf ${archive} ${folder}/${first}`],
          [`cp ${folder} ${archive}`],
        ],
        checks: [
          isFile(archive),
          {
            name: `${archive} holds both files`,
            condition: `tar tf ${archive} ${folder}/${first} ${folder}/${second}`,
          },
          {
            name: "the packed content is right",
            condition: `[ "$(tar xOf ${archive} ${folder}/${first})" = ${lines[0]} ]`,
          },
        ],
      };
    },
  },
  {
    name: "unpack",
    looks: false,
    build: world => {
      const archive = world.name(".tar");
      const folder = world.name();
      const file = world.name(".txt");
      const text = world.word();
      world.writeBytes(archive, tarOf(file, `${text}\n`));
      return {
        instruction: world.say(
          `Unpack ${archive} into a new directory ${folder}.`,
          `Extract the archive ${archive} to the directory ${folder}, which does not exist yet.`,
        ),
        solution: [`mkdir ${folder}`, `tar xf ${archive} -C ${folder}`],
        flawed: [
          [`tar xf ${archive} -C ${folder}`],
          [`mkdir ${folder}`, `tar xf ${archive}`],
          [`mkdir ${folder}`, `mv ${archive} ${folder}`],
        ],
        checks: [isFolder(folder), isFile(`${folder}/${file}`), contains(`${folder}/${file}`, [text])],
      };
    },
  },
];

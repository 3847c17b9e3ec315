//! Algorithms on the command line: the settings of a recipe and the inputs of a verb as flags of one subcommand.

use super::help;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, error::ErrorKind};
use luthier::tune::recipe::{Recipe, RecipeInfo};

/// An algorithm with its settings, and what a verb takes besides.
#[derive(Debug)]
pub(crate) struct WithRecipe<I> {
    pub(crate) recipe: Recipe,
    pub(crate) input: I,
}

/// What a verb takes besides the settings of an algorithm.
pub(crate) trait RecipeInput: Args {
    /// Whether the verb takes an algorithm.
    fn takes(_: &RecipeInfo) -> bool {
        true
    }
    /// Settings that mean nothing to the verb.
    fn ignored() -> Vec<String> {
        Vec::new()
    }
}

impl<I: RecipeInput> Subcommand for WithRecipe<I> {
    fn augment_subcommands(command: Command) -> Command {
        let all = Recipe::augment_subcommands(Command::new("recipes"));
        let taken = Recipe::all().into_iter().map(|r| *r.info()).filter(I::takes);
        let subcommands: Vec<Command> =
            taken.filter_map(|info| Some(joined::<I>(info, all.find_subcommand(info.name)?))).collect();
        command.subcommands(subcommands).subcommand_required(false)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Recipe::has_subcommand(name)
    }
}

/// A subcommand with the verb's inputs and the algorithm's settings, in the order of their sections.
fn joined<I: RecipeInput>(info: RecipeInfo, recipe: &Command) -> Command {
    let verb = I::augment_args(Command::new(info.name));
    let ignored = I::ignored();
    let own = recipe.get_arguments().cloned().map(|a| {
        let hide = ignored.contains(&a.get_id().to_string());
        a.hide(hide)
    });
    let args = help::in_sections(verb.get_arguments().cloned().chain(own).collect());
    let groups = verb.get_groups().chain(recipe.get_groups()).filter(|g| g.get_args().count() > 0);
    let command = Command::new(info.name).args(args).groups(groups.cloned());
    let about = recipe.get_about().cloned().unwrap_or_default();
    command.about(about).subcommand_required(false)
}

impl<I: RecipeInput> FromArgMatches for WithRecipe<I> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Some((_, sub)) = matches.subcommand() else {
            return Err(clap::Error::raw(ErrorKind::MissingSubcommand, "no algorithm was given"));
        };
        let typed = |id: &&String| {
            sub.ids().any(|known| known.as_str() == **id)
                && sub.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
        };
        if let Some(id) = I::ignored().iter().find(typed) {
            let flag = id.replace('_', "-");
            let message = format!("--{flag} has no effect here: it is for tuning with a decoder\n");
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, message));
        }
        Ok(WithRecipe { recipe: Recipe::from_arg_matches(matches)?, input: I::from_arg_matches(sub)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Names of the flags of a struct.
pub(crate) fn flags_of<T: Args>() -> Vec<String> {
    let command = T::augment_args(Command::new("flags"));
    command.get_arguments().map(|a| a.get_id().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Tuner {
        #[command(subcommand)]
        algorithm: WithRecipe<Nothing>,
    }

    #[derive(Debug, Args)]
    struct Nothing {}

    impl RecipeInput for Nothing {}

    /// A flag that is not typed is the default of the library.
    #[test]
    fn defaults_are_those_of_the_recipes() {
        for recipe in Recipe::all() {
            let typed = Tuner::try_parse_from(["tune", recipe.info().name]).unwrap();
            assert_eq!(typed.algorithm.recipe, recipe);
        }
    }

    #[test]
    fn flags_are_settings() {
        let words = "tune mira --constraints surrogate --no-average --no-shuffle --smooth-brevity --c 0.5 --iterations 3";
        let typed = Tuner::try_parse_from(words.split(' ')).unwrap();
        let text = toml::to_string(&typed.algorithm.recipe).unwrap();
        let lines = [
            "algorithm = \"mira\"",
            "average = false",
            "shuffle = false",
            "smooth-brevity = true",
            "c = 0.5",
        ];
        for line in lines {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(toml::from_str::<Recipe>(&text).unwrap(), typed.algorithm.recipe);
    }
}
